-- A partition whose whole ISR equals its min ISR is so by configuration. That is no incident.
-- A replica that is being added is not missing (KIP-352).
WITH kinds AS (
    SELECT
        cluster_id,
        topic,
        topic_id,
        partition,
        filter(
            replicas,
            lambda each: NOT array_contains(isr, each)
            AND NOT coalesce(array_contains(adding, each), false)
        ) AS out_of_sync,
        began_at,
        ended_at,
        unnest([
            CASE WHEN leaderless THEN 'leaderless' END,
            CASE WHEN under_replicated THEN 'under_replicated' END,
            CASE WHEN under_min_isr THEN 'under_min_isr' END,
            CASE WHEN at_min_isr AND under_replicated THEN 'at_min_isr' END,
            CASE WHEN single_copy THEN 'single_copy' END,
            CASE WHEN not_preferred THEN 'not_preferred' END,
            CASE WHEN reassigning THEN 'reassigning' END,
            CASE WHEN rack_unsafe THEN 'rack_unsafe' END
        ]) AS kind
    FROM state
    WHERE is_at_risk AND began_at < ended_at
),

risky AS (
    SELECT * FROM kinds WHERE kind IS NOT NULL
),

spans AS (
    SELECT
        cluster_id,
        kind,
        began_at,
        ended_at,
        count(*) AS partitions,
        sum((unix_micros(ended_at) - unix_micros(began_at))::HUGEINT) AS us
    FROM risky
    GROUP BY ALL
),

-- A stretch begins where nothing of its kind was at risk right before.
marked AS (
    SELECT
        *,
        (began_at > max(ended_at) OVER (
            PARTITION BY cluster_id, kind ORDER BY began_at, ended_at
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )) IS NOT FALSE AS is_new
    FROM spans
),

numbered AS (
    SELECT
        *,
        sum(is_new::INTEGER) OVER (
            PARTITION BY cluster_id, kind ORDER BY began_at, ended_at
        ) AS stretch
    FROM marked
),

stretches AS (
    SELECT
        cluster_id,
        kind,
        stretch,
        min(began_at) AS began_at,
        max(ended_at) AS ended_at,
        sum(us) AS us
    FROM numbered
    GROUP BY cluster_id, kind, stretch
),

steps AS (
    SELECT cluster_id, kind, stretch, moment, sum(step) AS step
    FROM (
        SELECT cluster_id, kind, stretch, began_at AS moment, partitions AS step FROM numbered
        UNION ALL
        SELECT cluster_id, kind, stretch, ended_at, -partitions FROM numbered
    )
    GROUP BY ALL
),

levels AS (
    SELECT
        cluster_id,
        kind,
        stretch,
        sum(step) OVER (PARTITION BY cluster_id, kind, stretch ORDER BY moment) AS level
    FROM steps
),

peaks AS (
    SELECT cluster_id, kind, stretch, max(level) AS peak
    FROM levels
    GROUP BY ALL
),

placed AS (
    SELECT
        risky.*,
        numbered.stretch,
        unix_micros(risky.ended_at) - unix_micros(risky.began_at) AS us
    FROM risky
    INNER JOIN numbered
        ON
            risky.cluster_id = numbered.cluster_id
            AND risky.kind = numbered.kind
            AND risky.began_at = numbered.began_at
            AND risky.ended_at = numbered.ended_at
),

counted AS (
    SELECT
        cluster_id,
        kind,
        stretch,
        count(DISTINCT (topic, topic_id, partition)) AS partitions,
        count(DISTINCT (topic, topic_id)) AS topics
    FROM placed
    GROUP BY ALL
),

missing AS (
    SELECT
        cluster_id,
        kind,
        stretch,
        unnest(out_of_sync) AS broker,
        us
    FROM (
        SELECT cluster_id, kind, stretch, out_of_sync, sum(us::HUGEINT) AS us
        FROM placed
        GROUP BY ALL
    )
),

missing_us AS (
    SELECT
        cluster_id,
        kind,
        stretch,
        broker,
        sum(us) AS us
    FROM missing
    GROUP BY ALL
),

most_missing AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, kind, stretch ORDER BY us DESC, broker
        ) AS place
    FROM missing_us
)

SELECT
    stretches.cluster_id,
    stretches.began_at,
    stretches.kind,
    stretches.ended_at,
    stretches.us::VARCHAR::DOUBLE / 60e6 AS minutes,
    peaks.peak::BIGINT AS most,
    counted.partitions,
    counted.topics,
    most_missing.broker,
    EXISTS(
        SELECT 1 FROM covered
        WHERE
            covered.cluster_id = stretches.cluster_id
            AND (covered.began_at = stretches.began_at OR covered.ended_at = stretches.ended_at)
    ) AS censored
FROM stretches
INNER JOIN peaks
    ON
        stretches.cluster_id = peaks.cluster_id
        AND stretches.kind = peaks.kind
        AND stretches.stretch = peaks.stretch
INNER JOIN counted
    ON
        stretches.cluster_id = counted.cluster_id
        AND stretches.kind = counted.kind
        AND stretches.stretch = counted.stretch
LEFT JOIN most_missing
    ON
        stretches.cluster_id = most_missing.cluster_id
        AND stretches.kind = most_missing.kind
        AND stretches.stretch = most_missing.stretch
        AND most_missing.place = 1
