-- What the report's queries share. The variables since and until are the span, bin_us the length of
-- a cell of a strip. Minutes are added as whole microseconds, so that no order of rows changes a sum.
CREATE OR REPLACE MACRO us(minutes) AS CAST(round(minutes * 6e7) AS BIGINT);
-- The sum of what is known, but never 0 if a part of it is not.
CREATE OR REPLACE MACRO known_sum(minutes, is_zero) AS CASE
    WHEN sum(us(minutes)) > 0 THEN CAST(sum(us(minutes)) AS BIGINT)
    WHEN bool_or(minutes IS NULL AND NOT is_zero) THEN NULL
    ELSE 0
END;
CREATE OR REPLACE MACRO inside(moment) AS
    moment >= getvariable('since') AND moment < getvariable('until');
-- An incident counts if a part of it lies in the span.
CREATE OR REPLACE MACRO reaches(began, ended) AS
    began < getvariable('until')
    AND (ended > getvariable('since') OR began >= getvariable('since'));
CREATE OR REPLACE MACRO bin_of(moment) AS
    (epoch_us(moment) - epoch_us(getvariable('since'))) // getvariable('bin_us');

CREATE OR REPLACE TEMP TABLE topic_sum AS
SELECT
    cluster_id,
    topic,
    CAST(sum(us(leaderless)) AS BIGINT) AS leaderless,
    -- With all of its replicas in sync no partition is under a min ISR, known or not.
    known_sum(under_min_isr, under_replicated = 0) AS under_min_isr,
    CAST(sum(us(under_replicated)) AS BIGINT) AS under_replicated,
    CAST(sum(us(single_copy)) AS BIGINT) AS single_copy,
    known_sum(at_min_isr, false) AS at_min_isr,
    CAST(sum(us(not_preferred)) AS BIGINT) AS not_preferred,
    known_sum(reassigning, false) AS reassigning,
    known_sum(rack_unsafe, false) AS rack_unsafe
FROM risk_hour
WHERE inside(hour)
GROUP BY ALL;
