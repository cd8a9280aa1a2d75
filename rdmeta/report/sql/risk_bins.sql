-- Partition-time of the three gravest kinds by cluster and bin; bin -1 is all.
SELECT
    cluster_id,
    CASE WHEN grouping(bin) = 1 THEN -1 ELSE bin END AS bin,
    CAST(sum(us(leaderless)) AS BIGINT) AS leaderless,
    known_sum(under_min_isr, under_replicated = 0) AS under_min_isr,
    CAST(sum(us(under_replicated)) AS BIGINT) AS under_replicated
FROM (SELECT *, bin_of(hour) AS bin FROM risk_hour WHERE inside(hour))
GROUP BY GROUPING SETS ((cluster_id, bin), (cluster_id))
ORDER BY cluster_id, bin
