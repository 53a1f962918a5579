#!/bin/sh
# Runs once, when the database of compose.yaml is made: a role for Quire that is no superuser, because
# superusers pass by the policies that keep collections apart.
set -eu
psql --no-psqlrc --set ON_ERROR_STOP=1 --set password="$QUIRE_DB_PASSWORD" \
    --username "${POSTGRES_USER:-postgres}" --dbname "$POSTGRES_DB" <<'SQL'
CREATE ROLE quire LOGIN PASSWORD :'password';
SELECT format('ALTER DATABASE %I OWNER TO quire', current_database()) \gexec
CREATE EXTENSION IF NOT EXISTS vector;
SQL
