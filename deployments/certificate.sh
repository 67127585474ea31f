#!/bin/sh
# Makes the certificate, with its key, that all machines of a Dask cluster show one another: sh certificate.sh FILE [OWNER]
set -eu
test -s "$1" && exit 0
umask 077
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj /CN=patternmill-dask \
    -keyout "$1.key" -out "$1.crt" 2>/dev/null
cat "$1.crt" "$1.key" > "$1.new"
rm "$1.crt" "$1.key"
test $# -lt 2 || chown "$2" "$1.new"
mv "$1.new" "$1"
