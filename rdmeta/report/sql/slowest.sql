-- The ten slowest recoveries.
SELECT
    cluster_id, topic, partition, epoch_us(began_at) AS began_at_us, seconds, brokers, ended_by,
    censored OR begin_unseen AS censored
FROM recovery
WHERE reaches(began_at, ended_at)
ORDER BY seconds DESC, began_at_us, cluster_id, topic, topic_id, partition
LIMIT 10
