-- Only partitions whose replicas differ at some time are put in order.
WITH of_changed AS (
    SELECT state.*
    FROM state
    SEMI JOIN (
        SELECT cluster_id, topic, topic_id, partition
        FROM state
        GROUP BY ALL
        HAVING min(replicas) <> max(replicas) OR bool_or(reassigning)
    ) AS changed
        ON
            state.cluster_id = changed.cluster_id
            AND state.topic = changed.topic
            AND state.topic_id IS NOT DISTINCT FROM changed.topic_id
            AND state.partition = changed.partition
    WHERE began_at < ended_at
),

in_order AS (
    SELECT
        *,
        coalesce(lag(ended_at) OVER one = began_at, false) AS has_before,
        coalesce(lag(reassigning) OVER one, false) AS was_reassigning,
        lag(replicas) OVER one AS replicas_before,
        coalesce(lead(began_at) OVER one = ended_at, false) AS has_after,
        lead(replicas) OVER one AS replicas_after,
        coalesce(lead(reassigning) OVER one, false) AS goes_on
    FROM of_changed
    WINDOW one AS (PARTITION BY cluster_id, topic, topic_id, partition ORDER BY began_at)
),

-- Metadata tells neither `adding` nor `removing`: a change of replicas is all that it shows. In a log
-- one that needs no copy of data is done at once: another order, or fewer replicas.
seen AS (
    SELECT
        cluster_id,
        topic,
        topic_id,
        partition,
        began_at,
        CASE WHEN NOT reassigning THEN began_at END AS ended_at,
        replicas_before AS from_replicas,
        replicas AS to_replicas,
        CASE WHEN NOT reassigning THEN 0.0 END AS seconds,
        CASE WHEN NOT reassigning THEN 'done' ELSE 'unknown' END AS outcome
    FROM in_order
    WHERE
        has_before
        AND replicas_before <> replicas
        AND (reassigning IS NULL OR NOT (reassigning OR was_reassigning))
),

-- A log tells both: a reassignment lasts as long as one of them is not empty.
numbered AS (
    SELECT
        *,
        sum((NOT (has_before AND was_reassigning))::INTEGER) OVER (
            PARTITION BY cluster_id, topic, topic_id, partition ORDER BY began_at
        ) AS number
    FROM in_order
    WHERE reassigning
),

reported AS (
    SELECT
        cluster_id,
        topic,
        topic_id,
        partition,
        min(began_at) AS began_at,
        max(ended_at) AS ended_at,
        min_by(
            CASE
                WHEN has_before THEN replicas_before
                ELSE filter(replicas, lambda each: NOT array_contains(adding, each))
            END,
            began_at
        ) AS from_replicas,
        max_by(
            filter(replicas, lambda each: NOT array_contains(removing, each)), began_at
        ) AS to_replicas,
        max_by(has_after AND NOT goes_on, began_at) AS is_over,
        max_by(replicas_after, began_at) AS replicas_after
    FROM numbered
    GROUP BY cluster_id, topic, topic_id, partition, number
)

SELECT
    cluster_id,
    topic,
    topic_id,
    partition,
    began_at,
    CASE WHEN is_over THEN ended_at END AS ended_at,
    from_replicas,
    to_replicas,
    CASE WHEN is_over THEN (unix_micros(ended_at) - unix_micros(began_at)) / 1e6 END AS seconds,
    CASE
        WHEN NOT is_over THEN 'running'
        WHEN array_sort(replicas_after) = array_sort(to_replicas) THEN 'done'
        WHEN array_sort(replicas_after) = array_sort(from_replicas) THEN 'cancelled'
        ELSE 'unknown'
    END AS outcome
FROM reported
UNION ALL
SELECT
    cluster_id,
    topic,
    topic_id,
    partition,
    began_at,
    ended_at,
    from_replicas,
    to_replicas,
    seconds,
    outcome
FROM seen
