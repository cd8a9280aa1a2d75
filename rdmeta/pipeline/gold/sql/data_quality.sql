-- Each day of an observation, and each day on which something else happened.
WITH observed AS (
    SELECT
        cluster_id,
        date_trunc('day', seen_from) AS day,
        count(DISTINCT origin) AS observations,
        count(DISTINCT origin) FILTER (WHERE partial) AS partial,
        count(DISTINCT origin) FILTER (WHERE ended_by = 'clock') AS clocks_back
    FROM observation
    GROUP BY ALL
),

holes AS (
    SELECT
        cluster_id,
        ended_at AS left_at,
        lead(began_at) OVER (PARTITION BY cluster_id ORDER BY began_at) AS over_at
    FROM covered
),

cut_holes AS (
    SELECT
        cluster_id,
        day,
        count(*) AS holes,
        sum(
            unix_micros(least(over_at, day + INTERVAL 1 DAY)) - unix_micros(greatest(left_at, day))
        ) AS us
    FROM (
        SELECT
            *,
            unnest(days(left_at, over_at)) AS day
        FROM holes
        WHERE over_at IS NOT NULL
    )
    GROUP BY ALL
),

aside AS (
    SELECT
        cluster_id,
        day::TIMESTAMP AT TIME ZONE 'UTC' AS day,
        count(*) AS files
    FROM input_file
    GROUP BY ALL
),

elections AS (
    SELECT
        cluster_id,
        date_trunc('day', observed_at) AS day,
        count(*) FILTER (WHERE spread_us > 0) AS disagreeing,
        max(spread_us) AS spread_us
    FROM leader_change
    GROUP BY ALL
),

without_min_isr AS (
    SELECT
        cluster_id,
        date_trunc('day', began_at) AS day,
        sum(unix_micros(ended_at) - unix_micros(began_at)) AS us
    FROM state
    WHERE min_isr_used IS NULL
    GROUP BY ALL
),

days AS (
    SELECT cluster_id, day FROM observed
    UNION SELECT cluster_id, day FROM cut_holes
    UNION SELECT cluster_id, day FROM aside
)

SELECT
    days.cluster_id,
    days.day,
    coalesce(observations, 0)::INTEGER AS observations,
    coalesce(partial, 0)::INTEGER AS partial,
    coalesce(holes, 0)::INTEGER AS holes,
    coalesce(cut_holes.us, 0)::BIGINT / 60e6 AS hole_minutes,
    coalesce(files, 0)::INTEGER AS files_aside,
    coalesce(clocks_back, 0)::INTEGER AS clocks_back,
    coalesce(disagreeing, 0) AS epochs_disagreeing,
    spread_us / 1e6 AS disagreement_seconds,
    coalesce(without_min_isr.us, 0)::BIGINT / 60e6 AS unknown_min_isr
FROM days
LEFT JOIN observed USING (cluster_id, day)
LEFT JOIN cut_holes USING (cluster_id, day)
LEFT JOIN aside USING (cluster_id, day)
LEFT JOIN elections USING (cluster_id, day)
LEFT JOIN without_min_isr USING (cluster_id, day)
