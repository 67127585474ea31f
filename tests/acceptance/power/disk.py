"""A folder as it is on a disk whose power can be cut: what was not synced is lost then."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("disk.c")


class ForgetfulDisk:
    """A folder whose programs load `disk.c`, which records what they have synced.

    After a power cut a file has the content, and a folder the entries, of its last sync: a new file is gone if its
    folder was not synced, and a rename is undone.
    """

    def __init__(self, root: Path, beside: Path) -> None:
        """Compile the library. `beside` is a folder on the same file system, outside of `root`."""
        self.root, self._shadow = root, beside / "shadow"
        self._library = beside / "disk.so"
        command = ["cc", "-shared", "-fPIC", "-O1", "-w", "-o", str(self._library), str(SOURCE), "-ldl"]
        subprocess.run(command, check=True)
        self._remember_all()

    @property
    def environment(self) -> dict[str, str]:
        """Return what a program's environment needs."""
        return {
            "LD_PRELOAD": str(self._library),
            "FORGETFUL_ROOT": str(self.root),
            "FORGETFUL_SHADOW": str(self._shadow),
        }

    def cut_power(self) -> None:
        """Keep what was synced, and nothing else. No program may be using the disk."""
        after = self._shadow.with_name("after")
        self._restore(self.root.stat().st_ino, after)
        shutil.rmtree(self.root)
        after.rename(self.root)
        self._remember_all()

    def _restore(self, folder: int, to: Path) -> None:
        to.mkdir()
        listing = self._shadow / "folders" / str(folder)
        entries = listing.read_text("utf-8", "surrogateescape").splitlines() if listing.exists() else []
        for inode, name in (entry.split(" ", 1) for entry in entries):
            synced = self._shadow / "files" / inode
            if (self._shadow / "folders" / inode).exists():
                self._restore(int(inode), to / name)
            elif synced.exists():
                shutil.copyfile(synced, to / name)
            # Nothing was ever synced of it: an empty file, unless it is a folder or link, which a restart makes again.

    def _remember_all(self) -> None:
        """Treat the folder as it is now as synced."""
        shutil.rmtree(self._shadow, ignore_errors=True)
        for kind in ("files", "folders", "unlinked"):
            (self._shadow / kind).mkdir(parents=True)
        for folder, _, files in os.walk(self.root):
            entries = list(os.scandir(folder))
            listing = self._shadow / "folders" / str(Path(folder).stat().st_ino)
            lines = "".join(f"{entry.inode()} {entry.name}\n" for entry in entries if not entry.is_symlink())
            listing.write_text(lines, "utf-8", "surrogateescape")
            for file in (Path(folder) / name for name in files):
                if not file.is_symlink():
                    shutil.copyfile(file, self._shadow / "files" / str(file.stat().st_ino))
