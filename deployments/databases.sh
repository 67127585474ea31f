#!/bin/sh
# Run once by PostgreSQL's container on an empty volume: a database each for Prefect and for the ledger.
set -eu
for name in prefect patternmill; do
    psql --set=ON_ERROR_STOP=1 --set=name="$name" --set=password="$POSTGRES_PASSWORD" --username postgres <<'SQL'
CREATE ROLE :"name" LOGIN PASSWORD :'password';
CREATE DATABASE :"name" OWNER :"name";
SQL
done
