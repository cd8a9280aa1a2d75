-- The largest of the three gravest kinds by cluster and day, and the gravest of them.
SELECT
    cluster_id, bin, greatest(leaderless, under_min_isr, under_replicated) AS us,
    CASE
        WHEN leaderless > 0 THEN 'leaderless'
        WHEN under_min_isr > 0 THEN 'under_min_isr'
        WHEN under_replicated > 0 THEN 'under_replicated'
        ELSE ''
    END AS kind
FROM (
    SELECT
        cluster_id, day_of(hour) AS bin, us_total(leaderless) AS leaderless,
        us_total(under_min_isr) AS under_min_isr, us_total(under_replicated) AS under_replicated
    FROM risk_hour
    WHERE inside(hour)
    GROUP BY ALL
)
