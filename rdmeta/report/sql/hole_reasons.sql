-- The time in holes by cluster and reason.
SELECT cluster_id, each.reason AS reason, CAST(sum(us(each.minutes)) AS BIGINT) AS us
FROM (SELECT cluster_id, unnest(holes) AS each FROM coverage_hour WHERE inside(hour))
WHERE each.minutes > 0
GROUP BY ALL
ORDER BY cluster_id, us DESC, reason
