-- The largest of the three gravest kinds by cluster and day, and the gravest of them.
SELECT
    cluster_id,
    day_of(hour) AS bin,
    CAST(greatest(
        sum(us(leaderless)), sum(us(under_min_isr)), sum(us(under_replicated))
    ) AS BIGINT) AS us,
    CASE
        WHEN sum(us(leaderless)) > 0 THEN 'leaderless'
        WHEN sum(us(under_min_isr)) > 0 THEN 'under_min_isr'
        WHEN sum(us(under_replicated)) > 0 THEN 'under_replicated'
        ELSE ''
    END AS kind
FROM risk_hour
WHERE inside(hour)
GROUP BY ALL
