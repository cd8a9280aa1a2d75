-- The time that was observed, and that in holes, by cluster and bin.
SELECT
    cluster_id,
    bin_of(hour) AS bin,
    CAST(sum(us(observed)) AS BIGINT) AS observed,
    CAST(sum(us(hole)) AS BIGINT) AS hole
FROM coverage_hour
WHERE inside(hour)
GROUP BY ALL
ORDER BY ALL
