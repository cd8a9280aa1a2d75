-- Partition-time of the three gravest kinds by cluster and bin.
SELECT
    cluster_id,
    bin_of(hour) AS bin,
    CAST(sum(us(leaderless)) AS BIGINT) AS leaderless,
    CAST(sum(us(under_min_isr)) AS BIGINT) AS under_min_isr,
    CAST(sum(us(under_replicated)) AS BIGINT) AS under_replicated
FROM risk_hour
WHERE inside(hour)
GROUP BY ALL
ORDER BY cluster_id, bin
