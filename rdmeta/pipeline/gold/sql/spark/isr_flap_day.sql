-- Made by tools/spark_sql.py from ../isr_flap_day.sql.
-- Only partitions that miss a replica at some time are put in order.
WITH of_missing AS (
    SELECT state.*
    FROM state
    SEMI JOIN (
        SELECT DISTINCT
            cluster_id,
            topic,
            topic_id,
            partition
        FROM state
        WHERE array_size(array_except(replicas, isr)) > 0
    ) AS missing
        ON
            state.cluster_id = missing.cluster_id
            AND state.topic = missing.topic
            AND state.topic_id IS NOT DISTINCT FROM missing.topic_id
            AND state.partition = missing.partition
    WHERE began_at < ended_at
),

by_broker AS (
    SELECT
        cluster_id,
        topic,
        topic_id,
        partition,
        began_at,
        ended_at,
        array_contains(isr, broker) AS is_in,
        broker
    FROM (SELECT *, explode(array_distinct(replicas)) AS broker FROM of_missing)
),

with_before AS (
    SELECT
        *,
        coalesce(lag(ended_at) OVER one = began_at, false) AS has_before,
        lag(is_in) OVER one AS was_in
    FROM by_broker
    WINDOW one AS (PARTITION BY cluster_id, topic, topic_id, partition, broker ORDER BY began_at)
),

-- Moments at which the broker leaves or comes back, and ends of what was seen.
moments AS (
    SELECT
        *,
        lead(began_at) OVER one AS next_at,
        lead(is_in AND has_before) OVER one AS is_back
    FROM with_before
    WHERE NOT has_before OR is_in <> was_in
    WINDOW one AS (PARTITION BY cluster_id, topic, topic_id, partition, broker ORDER BY began_at)
),

flaps AS (
    SELECT
        cluster_id,
        timestamp_micros(unix_micros(began_at) - pmod(unix_micros(began_at), 86400000000)) AS day,
        broker,
        topic,
        unix_micros(next_at) - unix_micros(began_at) AS us
    FROM moments
    WHERE NOT is_in AND has_before AND is_back
)

SELECT
    cluster_id,
    day,
    broker,
    topic,
    count(*) AS times,
    median(us) / 1e6 AS median_seconds
FROM flaps
WHERE us <= :flap_us
GROUP BY cluster_id, day, broker, topic
