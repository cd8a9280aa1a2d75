-- Made by tools/spark_sql.py from ../controller.sql.
-- Recordings do not know the controller: on KRaft, Metadata names a random broker. Silver has no
-- table of it, so there are no rows.
SELECT
    cluster_id,
    seen_from AS began_at,
    seen_to AS ended_at,
    NULL::INTEGER AS broker,
    NULL::INTEGER AS epoch,
    NULL::DOUBLE AS seconds,
    false AS censored
FROM observation
WHERE false
