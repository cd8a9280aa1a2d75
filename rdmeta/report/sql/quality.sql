-- What was not seen of each cluster and why, what was set aside, clocks, and what is not known.
WITH holes AS (
    SELECT cluster_id, us_total(hole) AS hole_minutes
    FROM coverage_hour
    WHERE inside(hour)
    GROUP BY cluster_id
),
reasons AS (
    SELECT cluster_id, list({'reason': reason, 'us': us} ORDER BY us DESC, reason) AS reasons
    FROM (
        SELECT cluster_id, each.reason AS reason, us_total(each.minutes) AS us
        FROM (SELECT cluster_id, unnest(holes) AS each FROM coverage_hour WHERE inside(hour))
        WHERE each.minutes > 0
        GROUP BY ALL
    )
    GROUP BY cluster_id
),
days AS (
    SELECT
        cluster_id, total(files_aside) AS files_aside, total(clocks_back) AS clocks_back,
        max(disagreement_seconds) AS disagreement_seconds,
        us_total(unknown_min_isr) AS unknown_min_isr
    FROM data_quality
    WHERE inside(day)
    GROUP BY cluster_id
)
SELECT
    cluster_id, seen.us / span_us() AS observed, coalesce(hole_minutes, 0) AS hole_minutes,
    coalesce(reasons, []) AS reasons, coalesce(files_aside, 0) AS files_aside,
    coalesce(clocks_back, 0) AS clocks_back, disagreement_seconds, unknown_min_isr
FROM seen
LEFT JOIN holes USING (cluster_id)
LEFT JOIN reasons USING (cluster_id)
LEFT JOIN days USING (cluster_id)
ORDER BY observed, cluster_id
