"""The databases under the store: tables, migrations, SQLite, PostgreSQL, and how writes become durable."""
