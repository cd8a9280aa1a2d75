-- What was not seen of each cluster and why, what was set aside, clocks, and what is not known.
WITH holes AS (
    SELECT cluster_id, CAST(sum(us(hole)) AS BIGINT) AS hole_minutes
    FROM coverage_hour
    WHERE inside(hour)
    GROUP BY cluster_id
),
reasons AS (
    SELECT cluster_id, list({'reason': reason, 'us': us} ORDER BY us DESC, reason) AS reasons
    FROM (
        SELECT cluster_id, each.reason AS reason, CAST(sum(us(each.minutes)) AS BIGINT) AS us
        FROM (SELECT cluster_id, unnest(holes) AS each FROM coverage_hour WHERE inside(hour))
        WHERE each.minutes > 0
        GROUP BY ALL
    )
    GROUP BY cluster_id
),
days AS (
    SELECT
        cluster_id,
        CAST(sum(files_aside) AS BIGINT) AS files_aside,
        CAST(sum(clocks_back) AS BIGINT) AS clocks_back,
        max(disagreement_seconds) AS disagreement_seconds,
        CAST(sum(us(unknown_min_isr)) AS BIGINT) AS unknown_min_isr
    FROM data_quality
    WHERE inside(day)
    GROUP BY cluster_id
)
SELECT
    cluster_id,
    seen.us / span_us() AS observed,
    coalesce(hole_minutes, 0) AS hole_minutes,
    coalesce(reasons, []) AS reasons,
    coalesce(files_aside, 0) AS files_aside,
    coalesce(clocks_back, 0) AS clocks_back,
    disagreement_seconds,
    unknown_min_isr
FROM seen
LEFT JOIN holes USING (cluster_id)
LEFT JOIN reasons USING (cluster_id)
LEFT JOIN days USING (cluster_id)
ORDER BY observed, cluster_id
