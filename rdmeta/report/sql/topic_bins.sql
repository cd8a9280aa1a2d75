-- Partition-time of the 40 worst topics of each of three kinds, by bin.
WITH sums AS (
    UNPIVOT (SELECT cluster_id, topic, leaderless, under_min_isr, under_replicated FROM topic_sum)
    ON leaderless, under_min_isr, under_replicated INTO NAME kind VALUE total
),
worst AS (
    SELECT
        *, count(*) OVER (PARTITION BY kind) AS every,
        row_number() OVER (PARTITION BY kind ORDER BY total DESC, cluster_id, topic) AS place
    FROM sums
    WHERE total > 0
    QUALIFY place <= 40
)
SELECT kind, cluster_id, topic, total, every, list({'bin': bin, 'us': us}) AS bins
FROM (
    SELECT
        worst.*, bin_of(hour) AS bin, us_total(CASE kind
            WHEN 'leaderless' THEN leaderless
            WHEN 'under_min_isr' THEN under_min_isr
            ELSE under_replicated
        END) AS us
    FROM worst
    JOIN risk_hour USING (cluster_id, topic)
    WHERE inside(hour)
    GROUP BY ALL
)
GROUP BY kind, place, cluster_id, topic, total, every
ORDER BY kind, place
