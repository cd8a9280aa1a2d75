-- How far the broker with the most leaders is above the mean, by cluster and bin; bin -1 is all.
SELECT
    cluster_id,
    CASE WHEN grouping(bin) = 1 THEN -1 ELSE bin END AS bin,
    round(sum((max_to_mean - 1) * observed) / sum(observed), 4) AS skew
FROM (
    SELECT *, bin_of(hour) AS bin
    FROM balance_hour
    WHERE kind = 'cluster' AND max_to_mean IS NOT NULL AND observed > 0 AND inside(hour)
)
GROUP BY GROUPING SETS ((cluster_id, bin), (cluster_id))
ORDER BY ALL
