-- The time that was observed, by cluster and bin.
SELECT cluster_id, bin_of(hour) AS bin, CAST(sum(us(observed)) AS BIGINT) AS observed
FROM coverage_hour
WHERE inside(hour)
GROUP BY ALL
