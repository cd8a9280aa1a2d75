-- Leaders and replicas of each broker and rack on the first and the last day of each cluster, that
-- with the most skew first.
WITH edges AS (
    SELECT
        cluster_id,
        min(date_trunc('day', hour)) AS first_day,
        max(date_trunc('day', hour)) AS last_day
    FROM balance_hour
    WHERE inside(hour)
    GROUP BY cluster_id
),
hours AS (
    SELECT
        balance_hour.*,
        date_trunc('day', hour) = first_day AS is_first,
        date_trunc('day', hour) = last_day AS is_last
    FROM balance_hour
    JOIN edges USING (cluster_id)
    WHERE inside(hour) AND (is_first OR is_last)
),
-- A broker that is not there in an hour leads nothing in it.
whole AS (
    SELECT
        cluster_id,
        sum(observed) FILTER (WHERE is_first) AS us_first,
        sum(observed) FILTER (WHERE is_last) AS us_last
    FROM hours
    WHERE kind = 'cluster'
    GROUP BY cluster_id
)
SELECT
    hours.cluster_id,
    kind,
    coalesce(CAST(broker AS VARCHAR), rack, 'none') AS who,
    round(sum(leaders * observed) FILTER (WHERE is_first) / any_value(us_first), 2)
        AS leaders_first,
    round(sum(leaders * observed) FILTER (WHERE is_last) / any_value(us_last), 2) AS leaders_last,
    round(sum(replicas * observed) FILTER (WHERE is_first) / any_value(us_first), 2)
        AS replicas_first,
    round(sum(replicas * observed) FILTER (WHERE is_last) / any_value(us_last), 2)
        AS replicas_last,
    sum(hours.skew * observed) FILTER (WHERE is_first)
        / sum(observed) FILTER (WHERE is_first AND hours.skew IS NOT NULL) AS skew_first,
    sum(hours.skew * observed) FILTER (WHERE is_last)
        / sum(observed) FILTER (WHERE is_last AND hours.skew IS NOT NULL) AS skew_last
FROM hours
JOIN whole USING (cluster_id)
LEFT JOIN skew ON skew.cluster_id = hours.cluster_id AND skew.bin = -1
WHERE kind IN ('broker', 'rack')
GROUP BY hours.cluster_id, kind, broker, rack
ORDER BY any_value(coalesce(skew.skew, 0)) DESC, hours.cluster_id, broker, rack NULLS LAST
