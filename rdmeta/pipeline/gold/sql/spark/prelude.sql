-- Made by tools/spark_sql.py from ../prelude.sql.
-- The racks of the brokers that were listed on a day. A broker that is away for a part of the day
-- stays registered, so its rack counts. Without the rack of each broker nothing is known.
CREATE OR REPLACE TEMPORARY VIEW day_racks AS
SELECT
    cluster_id,
    timestamp_micros(unix_micros(began_at) - pmod(unix_micros(began_at), 86400000000)) AS day,
    count(DISTINCT rack) AS day_racks,
    count(*) = count(rack) AS racks_are_known
FROM broker_interval
GROUP BY ALL;

-- Each interval of a partition, with what is at risk in it. A flag is null if silver cannot tell.
CREATE OR REPLACE TEMPORARY VIEW state AS
WITH counted AS (
    SELECT
        *,
        array_size(replicas) - coalesce(array_size(adding), 0) AS eff,
        adding IS NOT NULL AS eff_is_exact,
        array_size(isr) AS in_sync,
        coalesce(min_isr, :min_isr) AS min_isr_used,
        -- least() passes over a null, so it must not see one.
        CASE WHEN min_isr_used IS NOT NULL THEN least(min_isr_used, eff) END AS enough
    FROM partition_interval
),

flagged AS (
    SELECT
        counted.*,
        leader IS NULL AS leaderless,
        in_sync < eff AS under_replicated,
        in_sync < enough AS under_min_isr,
        in_sync = enough AS at_min_isr,
        in_sync = 1 AND eff > 1 AS single_copy,
        CASE WHEN array_size(replicas) > 0 THEN leader IS DISTINCT FROM get(replicas, 0) END
        AND NOT coalesce(array_contains(adding, get(replicas, 0)), false) AS not_preferred,
        array_size(adding) > 0 OR array_size(removing) > 0 AS reassigning,
        CASE WHEN racks_are_known THEN racks < least(eff, day_racks) END AS rack_unsafe
    FROM counted
    LEFT JOIN day_racks
        ON
            counted.cluster_id = day_racks.cluster_id
            AND timestamp_micros(unix_micros(counted.began_at) - pmod(unix_micros(counted.began_at), 86400000000)) = day_racks.day
)

-- A partition whose full ISR is the min ISR is so by configuration, and not for a while.
SELECT
    *,
    coalesce(leaderless, false)
    OR coalesce(under_replicated, false)
    OR coalesce(under_min_isr, false)
    OR coalesce(single_copy, false)
    OR coalesce(not_preferred, false)
    OR coalesce(reassigning, false)
    OR coalesce(rack_unsafe, false) AS is_at_risk
FROM flagged;




-- The spans in which the cluster was observed without a hole. One look is a span without length.
CREATE OR REPLACE TEMPORARY VIEW observed_span AS
WITH marked AS (
    SELECT
        cluster_id,
        counts_from AS began_at,
        counts_to AS ended_at,
        (counts_from > max(counts_to) OVER (
            PARTITION BY cluster_id ORDER BY counts_from, counts_to
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )) IS NOT FALSE AS is_new
    FROM observation
    WHERE counts_from <= counts_to
),

numbered AS (
    SELECT
        *,
        sum(is_new::INTEGER) OVER (PARTITION BY cluster_id ORDER BY began_at, ended_at) AS span
    FROM marked
)

SELECT
    cluster_id,
    min(began_at) AS began_at,
    max(ended_at) AS ended_at
FROM numbered
GROUP BY cluster_id, span;

-- The spans that have a length.
CREATE OR REPLACE TEMPORARY VIEW covered AS
SELECT *
FROM observed_span
WHERE began_at < ended_at;
