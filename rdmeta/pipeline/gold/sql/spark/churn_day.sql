-- Made by tools/spark_sql.py from ../churn_day.sql.
-- A rise without elections is part of one that counts on the day before.
WITH changed AS (
    SELECT
        cluster_id,
        timestamp_micros(unix_micros(observed_at) - pmod(unix_micros(observed_at), 86400000000)) AS day,
        topic,
        old_leader,
        new_leader,
        old_leader IS NOT DISTINCT FROM new_leader AS is_kept,
        coalesce(elections, 0) AS elections
    FROM leader_change
    WHERE elections IS DISTINCT FROM 0 OR new_leader_epoch IS NOT DISTINCT FROM old_leader_epoch
),

-- Each change once for the broker that it came from, and once for the one that it went to. A log has
-- an unclean election beside the change of leader.
sides AS (
    SELECT
        cluster_id,
        day,
        topic,
        new_leader AS broker,
        NOT is_kept AS gained,
        false AS lost,
        is_kept,
        elections,
        0 AS unclean
    FROM changed
    UNION ALL
    SELECT
        cluster_id,
        day,
        topic,
        old_leader,
        false,
        true,
        false,
        0,
        0
    FROM changed
    WHERE NOT is_kept
    UNION ALL
    SELECT
        cluster_id,
        timestamp_micros(unix_micros(observed_at) - pmod(unix_micros(observed_at), 86400000000)),
        topic,
        broker,
        false,
        false,
        false,
        0,
        1
    FROM change
    WHERE kind = 'unclean_election'
),

counted AS (
    SELECT
        cluster_id,
        day,
        broker,
        topic,
        grouping(broker) = 0 AS is_of_broker,
        grouping(topic) = 0 AS is_of_topic,
        count(*) FILTER (WHERE gained AND broker_or_none IS NOT NULL) AS gained,
        count(*) FILTER (WHERE lost AND broker_or_none IS NOT NULL) AS lost,
        count(*) FILTER (WHERE is_kept AND broker_or_none IS NOT NULL) AS kept,
        sum(elections)::BIGINT AS elections,
        sum(greatest(elections - 1, 0))::BIGINT AS unseen_elections,
        sum(unclean)::BIGINT AS unclean
    FROM (SELECT *, broker AS broker_or_none FROM sides)
    GROUP BY GROUPING SETS ((cluster_id, day, broker), (cluster_id, day, topic), (cluster_id, day))
    HAVING grouping(broker) = 1 OR broker IS NOT NULL
),

-- The days of which a log tells. What is left of a long term may not name its controller.
logged AS (
    SELECT cluster_id, timestamp_micros(unix_micros(began_at) - pmod(unix_micros(began_at), 86400000000)) AS day
    FROM controller
    WHERE us > 0
    UNION
    SELECT cluster_id, timestamp_micros(unix_micros(began_at) - pmod(unix_micros(began_at), 86400000000))
    FROM broker_interval
    WHERE us > 0 AND fenced IS NOT NULL
)

SELECT
    counted.cluster_id,
    counted.day,
    CASE WHEN is_of_broker THEN 'broker' WHEN is_of_topic THEN 'topic' ELSE 'cluster' END AS kind,
    broker,
    topic,
    gained,
    lost,
    kept,
    elections,
    unseen_elections,
    CASE WHEN logged.day IS NOT NULL THEN unclean END AS unclean
FROM counted
LEFT JOIN logged ON counted.cluster_id = logged.cluster_id AND counted.day = logged.day
