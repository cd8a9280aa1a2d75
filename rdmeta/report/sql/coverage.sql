-- The time that was observed, by cluster and bin.
SELECT cluster_id, bin_of(hour) AS bin, us_total(observed) AS observed
FROM coverage_hour
WHERE inside(hour)
GROUP BY ALL
