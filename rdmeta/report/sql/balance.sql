-- Leaders and replicas of each broker and rack on the first and the last day of each cluster, that
-- with the most skew first.
WITH edges AS (
    SELECT cluster_id, min(hour) AS low, max(hour) AS high
    FROM balance_hour
    WHERE inside(hour)
    GROUP BY cluster_id
),
-- The time of an hour of the first day, and of one of the last.
hours AS (
    SELECT
        balance_hour.*,
        CASE WHEN date_trunc('day', hour) = date_trunc('day', low) THEN observed END AS early,
        CASE WHEN date_trunc('day', hour) = date_trunc('day', high) THEN observed END AS late
    FROM balance_hour
    JOIN edges USING (cluster_id)
    WHERE inside(hour)
),
-- A broker that is not there in an hour leads nothing in it.
whole AS (
    SELECT cluster_id, sum(early) AS early, sum(late) AS late
    FROM hours
    WHERE kind = 'cluster'
    GROUP BY cluster_id
)
SELECT
    hours.cluster_id, kind, coalesce(CAST(broker AS VARCHAR), rack, 'none') AS who,
    round(sum(leaders * hours.early) / any_value(whole.early), 2) AS leaders_first,
    round(sum(leaders * hours.late) / any_value(whole.late), 2) AS leaders_last,
    round(sum(replicas * hours.early) / any_value(whole.early), 2) AS replicas_first,
    round(sum(replicas * hours.late) / any_value(whole.late), 2) AS replicas_last,
    sum(hours.skew * hours.early) / sum(hours.early) FILTER (WHERE hours.skew IS NOT NULL)
        AS skew_first,
    sum(hours.skew * hours.late) / sum(hours.late) FILTER (WHERE hours.skew IS NOT NULL)
        AS skew_last
FROM hours
JOIN whole USING (cluster_id)
LEFT JOIN skew ON skew.cluster_id = hours.cluster_id AND skew.bin = -1
WHERE kind IN ('broker', 'rack') AND coalesce(hours.early, hours.late) IS NOT NULL
GROUP BY hours.cluster_id, kind, broker, rack
ORDER BY any_value(coalesce(skew.skew, 0)) DESC, hours.cluster_id, broker, rack NULLS LAST
