-- Made by tools/spark_sql.py from ../controller.sql.
-- Intervals end at midnight: those of one term are joined within a month. An epoch has one leader.
WITH marked AS (
    SELECT
        *,
        timestamp_micros(unix_date(trunc(date_from_unix_date((unix_micros(began_at) DIV 86400000000)::INT), 'MONTH')) * 86400000000) AS month,
        (
            lag(ended_at) OVER in_time = began_at
            AND lag(epoch) OVER in_time = epoch
            AND lag(broker) OVER in_time IS NOT DISTINCT FROM broker
        ) IS NOT TRUE AS is_new
    FROM controller
    WHERE us > 0
    WINDOW
        in_time AS (PARTITION BY cluster_id, timestamp_micros(unix_date(trunc(date_from_unix_date((unix_micros(began_at) DIV 86400000000)::INT), 'MONTH')) * 86400000000) ORDER BY began_at)
),

numbered AS (
    SELECT
        *,
        sum(is_new::INTEGER) OVER (PARTITION BY cluster_id, month ORDER BY began_at) AS term
    FROM marked
)

SELECT
    cluster_id,
    min(began_at) AS began_at,
    max(ended_at) AS ended_at,
    min(broker) AS broker,
    min(epoch) AS epoch,
    (unix_micros(max(ended_at)) - unix_micros(min(began_at))) / 1e6 AS seconds,
    min_by(began_by, began_at) <> 'controller_changed'
    OR max_by(ended_by, began_at) <> 'controller_changed' AS censored
FROM numbered
GROUP BY cluster_id, month, term
