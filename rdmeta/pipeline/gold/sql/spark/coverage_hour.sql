-- Made by tools/spark_sql.py from ../coverage_hour.sql.
WITH counting AS (
    SELECT
        cluster_id,
        origin,
        counts_from AS began_at,
        counts_to AS ended_at,
        ended_by
    FROM observation
    WHERE counts_from < counts_to
),

-- A hole lies between an observation and the next one. Observations that count never overlap.
holes AS (
    SELECT
        cluster_id,
        ended_by AS reason,
        ended_at AS left_at,
        lead(began_at) OVER (PARTITION BY cluster_id ORDER BY began_at, ended_at) AS over_at
    FROM counting
),

cut_holes AS (
    SELECT
        cluster_id,
        reason,
        hour,
        sum((unix_micros(least(over_at, hour + INTERVAL 1 HOUR)) - unix_micros(greatest(left_at, hour)))) AS us
    FROM (SELECT *, explode(transform(filter(sequence(unix_micros(left_at) - pmod(unix_micros(left_at), 3600000000), unix_micros(over_at), 3600000000), each -> each < unix_micros(over_at)), each -> timestamp_micros(each))) AS hour FROM holes WHERE over_at > left_at)
    GROUP BY ALL
),

hole_hours AS (
    SELECT
        cluster_id,
        hour,
        sum(us) AS us,
        array_sort(array_agg(named_struct('reason', reason, 'minutes', us::BIGINT / 60e6))) AS holes
    FROM cut_holes
    GROUP BY ALL
),

seen_hours AS (
    SELECT
        cluster_id,
        hour,
        sum((unix_micros(least(ended_at, hour + INTERVAL 1 HOUR)) - unix_micros(greatest(began_at, hour)))) AS us,
        array_sort(array_agg(DISTINCT origin)) AS origins
    FROM (SELECT *, explode(transform(filter(sequence(unix_micros(began_at) - pmod(unix_micros(began_at), 3600000000), unix_micros(ended_at), 3600000000), each -> each < unix_micros(ended_at)), each -> timestamp_micros(each))) AS hour FROM counting)
    GROUP BY ALL
)

SELECT
    coalesce(seen_hours.cluster_id, hole_hours.cluster_id) AS cluster_id,
    coalesce(seen_hours.hour, hole_hours.hour) AS hour,
    coalesce(seen_hours.us, 0)::BIGINT / 60e6 AS observed,
    coalesce(hole_hours.us, 0)::BIGINT / 60e6 AS hole,
    coalesce(hole_hours.holes, array()) AS holes,
    coalesce(origins, array()) AS origins
FROM seen_hours
FULL JOIN hole_hours
    ON seen_hours.cluster_id = hole_hours.cluster_id AND seen_hours.hour = hole_hours.hour
