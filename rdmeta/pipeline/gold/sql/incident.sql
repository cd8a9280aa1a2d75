-- A partition whose whole ISR equals its min ISR is so by configuration. That is no incident.
-- A replica that is being added is not missing (KIP-352).
WITH kinds AS (
    SELECT
        cluster_id,
        topic,
        topic_id,
        partition,
        list_filter(
            replicas,
            lambda each: NOT list_contains(isr, each)
            AND NOT coalesce(list_contains(adding, each), false)
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
        sum(epoch_us(ended_at) - epoch_us(began_at)) AS us
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
        min(began_at) AS began_at,
        max(ended_at) AS ended_at,
        sum(us) AS us
    FROM numbered
    GROUP BY cluster_id, kind, stretch
),

steps AS (
    SELECT cluster_id, kind, moment, sum(step) AS step
    FROM (
        SELECT cluster_id, kind, began_at AS moment, partitions AS step FROM spans
        UNION ALL
        SELECT cluster_id, kind, ended_at, -partitions FROM spans
    )
    GROUP BY ALL
),

levels AS (
    SELECT
        cluster_id,
        kind,
        moment,
        sum(step) OVER (PARTITION BY cluster_id, kind ORDER BY moment) AS level
    FROM steps
),

peaks AS (
    SELECT stretches.cluster_id, stretches.kind, stretches.began_at, max(level) AS peak
    FROM levels
    ASOF JOIN stretches
        ON
            levels.cluster_id = stretches.cluster_id
            AND levels.kind = stretches.kind
            AND levels.moment >= stretches.began_at
    GROUP BY ALL
),

placed AS (
    SELECT
        risky.*,
        stretches.began_at AS stretch_began_at,
        epoch_us(risky.ended_at) - epoch_us(risky.began_at) AS us
    FROM risky
    ASOF JOIN stretches
        ON
            risky.cluster_id = stretches.cluster_id
            AND risky.kind = stretches.kind
            AND risky.began_at >= stretches.began_at
),

counted AS (
    SELECT
        cluster_id,
        kind,
        stretch_began_at,
        count(DISTINCT {'topic': topic, 'id': topic_id, 'partition': partition}) AS partitions,
        count(DISTINCT {'topic': topic, 'id': topic_id}) AS topics
    FROM placed
    GROUP BY ALL
),

missing AS (
    SELECT
        cluster_id,
        kind,
        stretch_began_at,
        unnest(out_of_sync) AS broker,
        us
    FROM (
        SELECT cluster_id, kind, stretch_began_at, out_of_sync, sum(us) AS us
        FROM placed
        GROUP BY ALL
    )
),

missing_us AS (
    SELECT
        cluster_id,
        kind,
        stretch_began_at,
        broker,
        sum(us) AS us
    FROM missing
    GROUP BY ALL
),

most_missing AS (
    SELECT *
    FROM missing_us
    QUALIFY row_number() OVER (
        PARTITION BY cluster_id, kind, stretch_began_at ORDER BY us DESC, broker
    ) = 1
)

SELECT
    stretches.cluster_id,
    stretches.began_at,
    stretches.kind,
    stretches.ended_at,
    stretches.us::BIGINT / 60e6 AS minutes,
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
        AND stretches.began_at = peaks.began_at
INNER JOIN counted
    ON
        stretches.cluster_id = counted.cluster_id
        AND stretches.kind = counted.kind
        AND stretches.began_at = counted.stretch_began_at
LEFT JOIN most_missing
    ON
        stretches.cluster_id = most_missing.cluster_id
        AND stretches.kind = most_missing.kind
        AND stretches.began_at = most_missing.stretch_began_at
