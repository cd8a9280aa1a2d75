-- Topics that came, grew and went. Gold counts new partitions by month, without a time.
WITH changes AS (
    SELECT
        cluster_id, topic, began_at AS moment, 'created' AS outcome, partitions,
        CASE WHEN end_seen THEN (epoch_us(ended_at) - epoch_us(began_at)) / 1e6 END AS seconds
    FROM topic_life
    WHERE begin_seen AND inside(began_at)
    UNION ALL
    SELECT
        cluster_id, topic, ended_at, ended_by, partitions,
        CASE WHEN begin_seen THEN (epoch_us(ended_at) - epoch_us(began_at)) / 1e6 END
    FROM topic_life
    WHERE end_seen AND inside(ended_at)
    UNION ALL
    SELECT
        cluster_id, topic, date_trunc('month', began_at),
        'grew by ' || partitions_added || ' in that month', partitions, NULL
    FROM topic_life
    WHERE partitions_added > 0 AND reaches(began_at, last_seen_at)
)
SELECT
    cluster_id, topic, epoch_us(moment) AS began_at_us, partitions, seconds, outcome,
    count(*) OVER () AS every
FROM changes
ORDER BY began_at_us, cluster_id, topic, outcome, partitions, seconds
LIMIT 40
