-- Recoveries by cluster and by length; the row without a cluster is of all.
SELECT
    cluster_id,
    count(*) AS episodes,
    count(*) FILTER (WHERE seconds < 60) AS under_minute,
    count(*) FILTER (WHERE seconds >= 60 AND seconds < 600) AS under_10_minutes,
    count(*) FILTER (WHERE seconds >= 600 AND seconds < 3600) AS under_hour,
    count(*) FILTER (WHERE seconds >= 3600 AND seconds < 21600) AS under_6_hours,
    count(*) FILTER (WHERE seconds >= 21600) AS longer,
    quantile_cont(seconds, 0.5) FILTER (WHERE NOT censored AND NOT begin_unseen) AS median,
    quantile_cont(seconds, 0.95) FILTER (WHERE NOT censored AND NOT begin_unseen) AS p95,
    max(seconds) AS slowest,
    count(*) FILTER (WHERE censored OR begin_unseen) AS censored
FROM recovery
WHERE reaches(began_at, ended_at)
GROUP BY GROUPING SETS ((cluster_id), ())
ORDER BY cluster_id NULLS FIRST
