-- The racks of the brokers that were listed on a day. A broker that is away for a part of the day
-- stays registered, so its rack counts. Without the rack of each broker nothing is known.
CREATE OR REPLACE VIEW day_racks AS
SELECT
    cluster_id,
    date_trunc('day', began_at) AS day,
    count(DISTINCT rack) AS day_racks,
    count(*) = count(rack) AS racks_are_known
FROM broker_interval
GROUP BY ALL;

-- Each interval of a partition, with what is at risk in it. A flag is null if silver cannot tell.
CREATE OR REPLACE VIEW state AS
WITH counted AS (
    SELECT
        *,
        len(replicas) - coalesce(len(adding), 0) AS eff,
        adding IS NOT NULL AS eff_is_exact,
        len(isr) AS in_sync,
        coalesce(min_isr, getvariable('min_isr')) AS min_isr_used,
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
        CASE WHEN len(replicas) > 0 THEN leader IS DISTINCT FROM replicas[1] END
        AND NOT coalesce(array_contains(adding, replicas[1]), false) AS not_preferred,
        len(adding) > 0 OR len(removing) > 0 AS reassigning,
        CASE WHEN racks_are_known THEN racks < least(eff, day_racks) END AS rack_unsafe
    FROM counted
    LEFT JOIN day_racks
        ON
            counted.cluster_id = day_racks.cluster_id
            AND date_trunc('day', counted.began_at) = day_racks.day
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

-- The microseconds since 1970, by the name that Spark has for them.
CREATE OR REPLACE MACRO unix_micros(moment) AS epoch_us(moment);

-- The hours, or the days, that a span of time touches.
CREATE OR REPLACE MACRO hours(began, ended) AS
    range(date_trunc('hour', began), ended, INTERVAL 1 HOUR);
CREATE OR REPLACE MACRO days(began, ended) AS
    range(date_trunc('day', began), ended, INTERVAL 1 DAY);

-- The microseconds of a span that lie in the hour which begins at `hour`.
CREATE OR REPLACE MACRO us_in_hour(began, ended, hour) AS
    unix_micros(least(ended, hour + INTERVAL 1 HOUR)) - unix_micros(greatest(began, hour));

-- The spans in which the cluster was observed without a hole. One look is a span without length.
CREATE OR REPLACE VIEW observed_span AS
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
CREATE OR REPLACE VIEW covered AS
SELECT *
FROM observed_span
WHERE began_at < ended_at;
