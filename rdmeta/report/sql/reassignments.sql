-- Reassignments that began, ended or were running; partitions of a topic with equal times are one.
SELECT
    cluster_id, topic, epoch_us(began_at) AS began_at_us, count(*) AS partitions,
    max(seconds) AS seconds, outcome, count(*) OVER () AS every
FROM reassignment
WHERE began_at < getvariable('until')
    AND (coalesce(ended_at, began_at) >= getvariable('since') OR outcome = 'running')
GROUP BY cluster_id, topic, began_at, outcome
ORDER BY began_at_us, cluster_id, topic, outcome
LIMIT 40
