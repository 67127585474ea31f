/* Loaded before libc (LD_PRELOAD): remembers what a program syncs below a folder, for a power cut to keep nothing else.

   FORGETFUL_ROOT is the folder; FORGETFUL_SHADOW, on the same file system, gets `files/INODE` with the content of each
   synced file, `folders/INODE` with the entries of each synced folder, and `unlinked/INODE`, which keeps the inode of
   a removed file from being used for another one. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int in_shadow(char *path, const char *kind, ino_t inode) {
    const char *shadow = getenv("FORGETFUL_SHADOW");
    return shadow ? snprintf(path, PATH_MAX, "%s/%s/%lu", shadow, kind, (unsigned long)inode) : 0;
}

static int is_below_root(const char *path) {
    const char *root = getenv("FORGETFUL_ROOT");
    return root && strncmp(path, root, strlen(root)) == 0;
}

static void copy_content(int fd, FILE *copy) {
    static char buffer[1 << 16];
    char own[64];
    snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
    int source = open(own, O_RDONLY | O_CLOEXEC);
    for (ssize_t size; source >= 0 && (size = read(source, buffer, sizeof buffer)) > 0;)
        fwrite(buffer, 1, size, copy);
    if (source >= 0) close(source);
}

static void copy_entries(const char *folder, FILE *copy) {
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            fprintf(copy, "%lu %s\n", (unsigned long)entry->d_ino, entry->d_name);
    if (entries) closedir(entries);
}

/* Remember what is synced. Only a complete copy gets its name: a sync that was cut off has synced nothing. */
static int sync_to_shadow(int fd, const char *name) {
    char link[64], path[PATH_MAX] = "", copied[PATH_MAX], temporary[PATH_MAX + 8];
    struct stat status;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, path, sizeof path - 1) < 0 || !is_below_root(path) || fstat(fd, &status) != 0)
        return ((int (*)(int))dlsym(RTLD_NEXT, name))(fd);
    pthread_mutex_lock(&lock);
    in_shadow(copied, S_ISDIR(status.st_mode) ? "folders" : "files", status.st_ino);
    snprintf(temporary, sizeof temporary, "%s.%d", copied, getpid());
    FILE *copy = fopen(temporary, "w");
    if (copy) {
        S_ISDIR(status.st_mode) ? copy_entries(path, copy) : copy_content(fd, copy);
        fclose(copy);
        ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(temporary, copied);
    }
    pthread_mutex_unlock(&lock);
    return copy ? 0 : -1;
}

static void keep_inode(const char *path) {
    char kept[PATH_MAX];
    struct stat status;
    if (lstat(path, &status) == 0 && S_ISREG(status.st_mode) && in_shadow(kept, "unlinked", status.st_ino))
        link(path, kept); /* fails where it is not on this file system: nothing below the root then */
}

int fsync(int fd) { return sync_to_shadow(fd, "fsync"); }

int fdatasync(int fd) { return sync_to_shadow(fd, "fdatasync"); }

int unlink(const char *path) {
    keep_inode(path);
    return ((int (*)(const char *))dlsym(RTLD_NEXT, "unlink"))(path);
}

int rename(const char *from, const char *to) {
    keep_inode(to);
    return ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(from, to);
}
