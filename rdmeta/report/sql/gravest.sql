-- The gravest incidents of the kinds in `kinds`, which lists them in that order.
SELECT
    cluster_id,
    kind,
    epoch_us(began_at) AS began_us,
    epoch_us(ended_at) AS ended_us,
    us(minutes) AS us,
    most,
    partitions,
    topics,
    broker,
    censored
FROM incident
WHERE reaches(began_at, ended_at) AND kind IN getvariable('kinds')
ORDER BY list_position(getvariable('kinds'), kind), us DESC, began_us, cluster_id
LIMIT 10
