-- What happened to each broker.
WITH days AS (
    SELECT
        cluster_id, broker, us_total(away) AS away, us_total(fenced) AS fenced,
        total(restarts) AS restarts, total(unclean_restarts) AS unclean_restarts,
        max(list_max(preferred_seconds)) AS preferred_seconds,
        total(preferred_open) AS preferred_open
    FROM broker_day
    WHERE inside(day)
    GROUP BY ALL
),
flaps AS (
    SELECT cluster_id, broker, total(times) AS flaps
    FROM isr_flap_day
    WHERE inside(day)
    GROUP BY ALL
),
churn AS (
    SELECT cluster_id, broker, total(lost) AS lost
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
