-- What the report's queries share. The variables since and until are the span, bin_us the length of
-- a cell of a strip. Minutes are added as whole microseconds, so that no order of rows changes a sum.
CREATE OR REPLACE MACRO us(minutes) AS CAST(round(minutes * 6e7) AS BIGINT);
CREATE OR REPLACE MACRO total(count) AS CAST(sum(count) AS BIGINT);
CREATE OR REPLACE MACRO us_total(minutes) AS total(us(minutes));
-- The sum of what is known, but never 0 if a part of it is not.
CREATE OR REPLACE MACRO known_sum(minutes, is_zero) AS CASE
    WHEN us_total(minutes) > 0 THEN us_total(minutes)
    WHEN bool_or(minutes IS NULL AND NOT is_zero) THEN NULL
    ELSE 0
END;
-- What is 0 if no row tells of it, but only if there was something to see.
CREATE OR REPLACE MACRO if_seen(value, of_row, seen) AS CASE
    WHEN of_row IS NOT NULL THEN value
    WHEN seen > 0 THEN 0
END;
CREATE OR REPLACE MACRO if_any(seen, condition) AS CASE
    WHEN sum(seen) > 0 THEN count(*) FILTER (WHERE condition)
END;
CREATE OR REPLACE MACRO span_us() AS epoch_us(getvariable('until')) - epoch_us(getvariable('since'));
CREATE OR REPLACE MACRO inside(moment) AS
    moment >= getvariable('since') AND moment < getvariable('until');
-- An incident counts if a part of it lies in the span.
CREATE OR REPLACE MACRO reaches(began, ended) AS
    began < getvariable('until')
    AND (ended > getvariable('since') OR began >= getvariable('since'));
CREATE OR REPLACE MACRO bin_of(moment) AS
    (epoch_us(moment) - epoch_us(getvariable('since'))) // getvariable('bin_us');
CREATE OR REPLACE MACRO day_of(moment) AS
    (epoch_us(moment) - epoch_us(getvariable('since')))
    // greatest(getvariable('bin_us'), 86400000000);

-- The time that was observed of each cluster.
CREATE OR REPLACE TEMP TABLE seen AS
SELECT cluster_id, coalesce(us_total(observed), 0) AS us
FROM cluster
LEFT JOIN (SELECT * FROM coverage_hour WHERE inside(hour)) USING (cluster_id)
GROUP BY cluster_id;

-- How far the broker with the most leaders is above the mean, by cluster and bin; bin -1 is all.
CREATE OR REPLACE TEMP TABLE skew AS
SELECT
    cluster_id,
    CASE WHEN grouping(bin) = 1 THEN -1 ELSE bin END AS bin,
    round(sum((max_to_mean - 1) * observed) / sum(observed), 4) AS skew
FROM (
    SELECT *, bin_of(hour) AS bin
    FROM balance_hour
    WHERE kind = 'cluster' AND max_to_mean IS NOT NULL AND observed > 0 AND inside(hour)
)
GROUP BY GROUPING SETS ((cluster_id, bin), (cluster_id));

CREATE OR REPLACE TEMP TABLE topic_sum AS
SELECT
    cluster_id, topic, us_total(leaderless) AS leaderless,
    -- With all of its replicas in sync no partition is under a min ISR, known or not.
    known_sum(under_min_isr, under_replicated = 0) AS under_min_isr,
    us_total(under_replicated) AS under_replicated, us_total(single_copy) AS single_copy,
    known_sum(at_min_isr, false) AS at_min_isr, us_total(not_preferred) AS not_preferred,
    known_sum(reassigning, false) AS reassigning, known_sum(rack_unsafe, false) AS rack_unsafe
FROM risk_hour
WHERE inside(hour)
GROUP BY ALL;
