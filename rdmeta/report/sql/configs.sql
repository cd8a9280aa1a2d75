-- Changes of configurations.
SELECT
    cluster_id, epoch_us(observed_at) AS began_at_us, resource_type, resource, key, old_value,
    new_value, count(*) OVER () AS every
FROM config_change
WHERE inside(observed_at)
ORDER BY began_at_us, cluster_id, resource_type, resource, key, old_value, new_value
LIMIT 40
