-- Made by tools/spark_sql.py from ../config_change.sql.
WITH
followed AS (
    SELECT
        *,
        lag(value) OVER in_time AS value_before,
        lag(ended_by) OVER in_time AS before_ended_by,
        coalesce(lag(ended_at) OVER in_time = began_at, false) AS is_next,
        coalesce(lead(began_at) OVER in_time = ended_at, false) AS has_next
    FROM config_interval
    WINDOW
        in_time AS (
            PARTITION BY cluster_id, resource_type, resource, key
            ORDER BY began_at, ended_at, version, origin
        )
)

-- A value that follows another one. Equal ones are secrets, which silver shows as `***`, or, where
-- one origin ended and another tells, one change seen again.
SELECT
    cluster_id,
    began_at AS observed_at,
    resource_type,
    resource,
    key,
    value_before AS old_value,
    value AS new_value,
    NULL::STRING AS asked_by
FROM followed
WHERE
    is_next
    AND before_ended_by NOT IN ('topic_removed', 'topic_recreated', 'topic_absent', 'topic_error')
    AND (value <> value_before OR (began_by = 'config_changed' AND before_ended_by <> 'gap'))
UNION ALL
-- Only a metadata log (it has offsets) tells that a value was set where there was none.
SELECT
    cluster_id,
    began_at,
    resource_type,
    resource,
    key,
    NULL,
    value,
    NULL
FROM followed
WHERE NOT is_next AND began_by = 'config_changed' AND followed.offset IS NOT NULL
UNION ALL
SELECT
    cluster_id,
    ended_at,
    resource_type,
    resource,
    key,
    value,
    NULL,
    NULL
FROM followed
WHERE NOT has_next AND ended_by = 'config_changed' AND followed.offset IS NOT NULL
