-- What happened to each broker.
WITH days AS (
    SELECT
        cluster_id,
        broker,
        CAST(sum(us(away)) AS BIGINT) AS away,
        CAST(sum(us(fenced)) AS BIGINT) AS fenced,
        CAST(sum(restarts) AS BIGINT) AS restarts,
        CAST(sum(unclean_restarts) AS BIGINT) AS unclean_restarts,
        max(list_max(preferred_seconds)) AS preferred_seconds,
        CAST(sum(preferred_open) AS BIGINT) AS preferred_open
    FROM broker_day
    WHERE inside(day)
    GROUP BY ALL
),
flaps AS (
    SELECT cluster_id, broker, CAST(sum(times) AS BIGINT) AS flaps
    FROM isr_flap_day
    WHERE inside(day)
    GROUP BY ALL
),
churn AS (
    SELECT cluster_id, broker, CAST(sum(lost) AS BIGINT) AS lost
    FROM churn_day
    WHERE kind = 'broker' AND inside(day)
    GROUP BY ALL
)
SELECT
    cluster_id, broker, away, fenced, restarts, unclean_restarts, coalesce(flaps, 0) AS flaps,
    coalesce(lost, 0) AS lost, preferred_seconds, preferred_open,
    greatest(away, unclean_restarts, restarts, flaps, lost, preferred_open) > 0 AS is_shown
FROM days
FULL JOIN flaps USING (cluster_id, broker)
FULL JOIN churn USING (cluster_id, broker)
ORDER BY
    coalesce(away, 0) DESC, coalesce(unclean_restarts, 0) DESC, coalesce(restarts, 0) DESC,
    coalesce(flaps, 0) DESC, coalesce(lost, 0) DESC, coalesce(preferred_open, 0) DESC,
    cluster_id, broker
