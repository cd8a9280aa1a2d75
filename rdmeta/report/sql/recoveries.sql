-- Recoveries by cluster and by length; the row without a cluster is of all.
WITH lengths AS (
    SELECT cluster_id, seen.us, seconds, censored OR begin_unseen AS is_cut
    FROM seen
    LEFT JOIN (SELECT * FROM recovery WHERE reaches(began_at, ended_at)) USING (cluster_id)
)
SELECT
    cluster_id,
    if_any(us, seconds >= 0) AS episodes,
    if_any(us, seconds < 60) AS under_minute,
    if_any(us, seconds >= 60 AND seconds < 600) AS under_10_minutes,
    if_any(us, seconds >= 600 AND seconds < 3600) AS under_hour,
    if_any(us, seconds >= 3600 AND seconds < 21600) AS under_6_hours,
    if_any(us, seconds >= 21600) AS longer,
    quantile_cont(seconds, 0.5) FILTER (WHERE NOT is_cut) AS median,
    quantile_cont(seconds, 0.95) FILTER (WHERE NOT is_cut) AS p95,
    max(seconds) AS slowest,
    if_any(us, is_cut) AS censored
FROM lengths
GROUP BY GROUPING SETS ((cluster_id), ())
ORDER BY cluster_id IS NOT NULL, slowest DESC NULLS LAST, cluster_id
