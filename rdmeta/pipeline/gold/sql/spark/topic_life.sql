-- Made by tools/spark_sql.py from ../topic_life.sql.
WITH
-- An interval lies in one month. One that ends where a month begins also tells what stood then.
seen AS (
    SELECT
        *,
        timestamp_micros(unix_date(trunc(date_from_unix_date((unix_micros(began_at) DIV 86400000000)::INT), 'MONTH')) * 86400000000) AS month,
        false AS is_before
    FROM topic_interval
    UNION ALL
    SELECT
        *,
        ended_at AS month,
        true AS is_before
    FROM topic_interval
    WHERE us > 0 AND ended_at = timestamp_micros(unix_date(trunc(date_from_unix_date((unix_micros(ended_at) DIV 86400000000)::INT), 'MONTH')) * 86400000000)
),

-- The names that may have several lives in a month; the others need not be put in order.
eventful AS (
    SELECT
        cluster_id,
        month,
        topic
    FROM seen
    GROUP BY ALL
    HAVING
        min(topic_id) <> max(topic_id)
        OR bool_or(
            us = 0
            OR began_by = 'topic_recreated'
            OR ended_by IN ('topic_removed', 'topic_recreated', 'topic_absent')
        )
),

-- Behind a removal there is another topic, unless it has the same id.
followed AS (
    SELECT
        *,
        ended_by IN ('topic_removed', 'topic_recreated', 'topic_absent') AS is_removed,
        coalesce(lead(began_at) OVER in_time = ended_at, false) AS has_next,
        row_number() OVER in_time AS place,
        coalesce(
            (
                lag(ended_by) OVER in_time IN ('topic_removed', 'topic_recreated', 'topic_absent')
                OR began_by = 'topic_recreated'
            )
            AND NOT coalesce(topic_id = lag(topic_id) OVER in_time, false),
            false
        ) AS is_other
    FROM seen
    SEMI JOIN eventful USING (cluster_id, month, topic)
    WINDOW
        in_time AS (
            PARTITION BY cluster_id, month, topic
            ORDER BY began_at, ended_at, version, origin, topic_id
        )
),

parted AS (
    SELECT
        *,
        sum(is_other::INTEGER) OVER (
            PARTITION BY cluster_id, month, topic ORDER BY place
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS part
    FROM followed
),

-- Another id is another topic as well, also where no id was known in between.
named AS (
    SELECT
        *,
        coalesce(topic_id <> last_value(topic_id, true) OVER (
            PARTITION BY cluster_id, month, topic, part ORDER BY place
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), false) AS is_renamed
    FROM parted
),

lived AS (
    SELECT
        *,
        sum(is_renamed::INTEGER) OVER (
            PARTITION BY cluster_id, month, topic, part ORDER BY place
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS life
    FROM named
    UNION ALL
    SELECT
        *,
        false AS is_removed,
        false AS has_next,
        unix_micros(began_at) AS place,
        false AS is_other,
        0 AS part,
        false AS is_renamed,
        0 AS life
    FROM seen
    ANTI JOIN eventful USING (cluster_id, month, topic)
)

-- The last interval of a life that another one follows at once was ended by a re-creation, which
-- may be dated at a midnight.
SELECT
    cluster_id,
    topic,
    max(topic_id) AS topic_id,
    min(began_at) FILTER (WHERE NOT is_before) AS began_at,
    max(ended_at) AS last_seen_at,
    CASE WHEN max_by(is_removed OR has_next, place) THEN max(ended_at) END AS ended_at,
    CASE
        WHEN max_by(is_removed, place) THEN max_by(ended_by, place)
        WHEN max_by(has_next, place) THEN 'topic_recreated'
    END AS ended_by,
    max_by(partitions, place) AS partitions,
    max(partitions) - min_by(partitions, place) AS partitions_added,
    min_by(NOT is_before AND began_by IN ('topic_added', 'topic_recreated'), place)
        AS begin_seen,
    max_by(is_removed OR has_next, place) AS end_seen
FROM lived
GROUP BY cluster_id, month, topic, part, life
HAVING NOT bool_and(is_before)
