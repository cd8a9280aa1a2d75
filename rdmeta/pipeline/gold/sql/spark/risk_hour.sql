-- Made by tools/spark_sql.py from ../risk_hour.sql.
-- Steady partitions of a topic all run from midnight to midnight: equal spans are counted first,
-- and only then cut at hours.
WITH spans AS (
    SELECT
        cluster_id,
        topic,
        began_at,
        ended_at,
        count(*) AS partitions,
        count(*) FILTER (WHERE leaderless) AS leaderless,
        count(*) FILTER (WHERE under_replicated) AS under_replicated,
        count(*) FILTER (WHERE under_min_isr) AS under_min_isr,
        count(*) FILTER (WHERE at_min_isr) AS at_min_isr,
        count(*) FILTER (WHERE single_copy) AS single_copy,
        count(*) FILTER (WHERE not_preferred) AS not_preferred,
        count(*) FILTER (WHERE reassigning) AS reassigning,
        count(*) FILTER (WHERE rack_unsafe) AS rack_unsafe,
        count(*) FILTER (WHERE at_min_isr IS NULL) AS unknown_min_isr,
        count(*) FILTER (WHERE reassigning IS NULL) AS unknown_reassigning,
        count(*) FILTER (WHERE rack_unsafe IS NULL) AS unknown_racks,
        bool_and(eff_is_exact) AS eff_is_exact
    FROM state
    GROUP BY ALL
),

-- The hours with something at risk; other hours need not be counted.
risky AS (
    SELECT DISTINCT
        cluster_id,
        topic,
        explode(transform(filter(sequence(unix_micros(began_at) - pmod(unix_micros(began_at), 3600000000), unix_micros(ended_at), 3600000000), each -> each < unix_micros(ended_at)), each -> timestamp_micros(each))) AS hour
    FROM spans
    WHERE
        leaderless + under_replicated + under_min_isr + at_min_isr > 0
        OR single_copy + not_preferred + reassigning + rack_unsafe > 0
),

pieces AS (
    SELECT
        *,
        (unix_micros(least(ended_at, hour + INTERVAL 1 HOUR)) - unix_micros(greatest(began_at, hour))) AS us
    FROM (
        SELECT spans.*, explode(transform(filter(sequence(unix_micros(began_at) - pmod(unix_micros(began_at), 3600000000), unix_micros(ended_at), 3600000000), each -> each < unix_micros(ended_at)), each -> timestamp_micros(each))) AS hour
        FROM spans
        SEMI JOIN risky ON spans.cluster_id = risky.cluster_id AND spans.topic = risky.topic
    ) AS cut
    SEMI JOIN risky
        ON
            cut.cluster_id = risky.cluster_id
            AND cut.topic = risky.topic
            AND cut.hour = risky.hour
)

SELECT
    cluster_id,
    topic,
    hour,
    sum(us * leaderless)::BIGINT / 60e6 AS leaderless,
    sum(us * under_replicated)::BIGINT / 60e6 AS under_replicated,
    CASE
        WHEN sum(us * (partitions - unknown_min_isr)) > 0
            THEN sum(us * under_min_isr)::BIGINT / 60e6
    END AS under_min_isr,
    CASE
        WHEN sum(us * (partitions - unknown_min_isr)) > 0
            THEN sum(us * at_min_isr)::BIGINT / 60e6
    END AS at_min_isr,
    sum(us * single_copy)::BIGINT / 60e6 AS single_copy,
    sum(us * not_preferred)::BIGINT / 60e6 AS not_preferred,
    CASE
        WHEN sum(us * (partitions - unknown_reassigning)) > 0
            THEN sum(us * reassigning)::BIGINT / 60e6
    END AS reassigning,
    CASE
        WHEN sum(us * (partitions - unknown_racks)) > 0
            THEN sum(us * rack_unsafe)::BIGINT / 60e6
    END AS rack_unsafe,
    sum(us * partitions)::BIGINT / 60e6 AS observed,
    sum(us * unknown_min_isr)::BIGINT / 60e6 AS unknown_min_isr,
    sum(us * unknown_reassigning)::BIGINT / 60e6 AS unknown_reassigning,
    sum(us * unknown_racks)::BIGINT / 60e6 AS unknown_racks,
    bool_and(eff_is_exact) AS eff_is_exact
FROM pieces
GROUP BY cluster_id, topic, hour
HAVING
    sum(us * (leaderless + under_replicated + under_min_isr + at_min_isr)) > 0
    OR sum(us * (single_copy + not_preferred + reassigning + rack_unsafe)) > 0
