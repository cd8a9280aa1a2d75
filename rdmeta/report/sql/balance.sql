-- Leaders and replicas of each broker and rack on the first and the last day of each cluster.
WITH edges AS (
    SELECT
        cluster_id,
        min(date_trunc('day', hour)) AS first_day,
        max(date_trunc('day', hour)) AS last_day
    FROM balance_hour
    WHERE inside(hour)
    GROUP BY ALL
),
edge AS (
    SELECT cluster_id, 'first' AS edge, first_day AS day FROM edges
    UNION ALL SELECT cluster_id, 'last', last_day FROM edges
),
hours AS (
    SELECT balance_hour.*, edge
    FROM balance_hour
    JOIN edge ON edge.cluster_id = balance_hour.cluster_id AND day = date_trunc('day', hour)
),
-- A broker that is not there in an hour leads nothing in it.
whole AS (
    SELECT cluster_id, edge, sum(observed) AS observed
    FROM hours
    WHERE kind = 'cluster'
    GROUP BY ALL
)
SELECT
    hours.cluster_id,
    kind,
    broker,
    rack,
    hours.edge,
    round(sum(leaders * hours.observed) / any_value(whole.observed), 2) AS leaders,
    round(sum(replicas * hours.observed) / any_value(whole.observed), 2) AS replicas,
    round(
        sum(skew * hours.observed) / sum(hours.observed) FILTER (WHERE skew IS NOT NULL), 4
    ) AS skew
FROM hours
JOIN whole ON whole.cluster_id = hours.cluster_id AND whole.edge = hours.edge
WHERE kind IN ('broker', 'rack')
GROUP BY hours.cluster_id, kind, broker, rack, hours.edge
ORDER BY ALL
