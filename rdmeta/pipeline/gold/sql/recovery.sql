-- Only partitions that miss a replica at some time are put in order. A replica that is being added
-- is not missing (KIP-352).
WITH of_missing AS (
    SELECT
        state.*,
        coalesce(under_replicated, false) AS is_under
    FROM state
    SEMI JOIN (
        SELECT DISTINCT cluster_id, topic, topic_id, partition
        FROM state
        WHERE under_replicated
    ) AS missing
        ON
            state.cluster_id = missing.cluster_id
            AND state.topic = missing.topic
            AND state.topic_id IS NOT DISTINCT FROM missing.topic_id
            AND state.partition = missing.partition
),

-- The interval before counts only if nothing lies between the two.
with_before AS (
    SELECT
        *,
        coalesce(lag(ended_at) OVER one = began_at, false) AS has_before,
        coalesce(lag(is_under) OVER one, false) AS was_under,
        lag(coalesce(leader, -1)) OVER one AS leader_before
    FROM of_missing
    WINDOW one AS (
        PARTITION BY cluster_id, topic, topic_id, partition ORDER BY began_at, ended_at, version
    )
),

numbered AS (
    SELECT
        *,
        sum((NOT (has_before AND was_under))::INTEGER) OVER (
            PARTITION BY cluster_id, topic, topic_id, partition ORDER BY began_at, ended_at, version
        ) AS episode
    FROM with_before
    WHERE is_under
),

episodes AS (
    SELECT
        cluster_id,
        topic,
        topic_id,
        partition,
        min(began_at) AS began_at,
        max(ended_at) AS ended_at,
        array_sort(array_distinct(flatten(array_agg(
            filter(
                replicas,
                lambda each: NOT array_contains(isr, each)
                AND NOT coalesce(array_contains(adding, each), false)
            )
        )))) AS brokers,
        max_by(ended_by, (ended_at, began_at, version)) AS ended_by,
        bool_or(has_before AND NOT was_under) AS has_before,
        count(DISTINCT coalesce(leader, -1)) > 1
        OR min(coalesce(leader, -1))
        <> min_by(leader_before, (began_at, ended_at, version)) AS differs
    FROM numbered
    GROUP BY cluster_id, topic, topic_id, partition, episode
)

SELECT
    cluster_id,
    topic,
    topic_id,
    partition,
    began_at,
    ended_at,
    (unix_micros(ended_at) - unix_micros(began_at)) / 1e6 AS seconds,
    brokers,
    CASE WHEN has_before THEN differs END AS leader_changed,
    EXISTS(
        SELECT 1 FROM observed_span AS span
        WHERE span.cluster_id = episodes.cluster_id AND span.began_at = episodes.began_at
    ) AS begin_unseen,
    ended_by,
    EXISTS(
        SELECT 1 FROM observed_span AS span
        WHERE span.cluster_id = episodes.cluster_id AND span.ended_at = episodes.ended_at
    ) AND ended_by IN ('open', 'gap', 'midnight')
    -- The topic may come again as it was: perhaps the client may not describe it for a while.
    OR ended_by IN ('topic_error', 'topic_absent') AS censored
FROM episodes
