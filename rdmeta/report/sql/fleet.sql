-- What happened to each cluster, worst first. One that was observed for less than half of the time
-- comes last and has no rank.
WITH risk AS (
    SELECT
        cluster_id,
        CAST(sum(us(leaderless)) AS BIGINT) AS leaderless,
        known_sum(under_min_isr, under_replicated = 0) AS under_min_isr,
        CAST(sum(us(under_replicated)) AS BIGINT) AS under_replicated
    FROM risk_hour
    WHERE inside(hour)
    GROUP BY cluster_id
),
incidents AS (
    SELECT cluster_id, count(*) AS incidents
    FROM incident
    WHERE reaches(began_at, ended_at)
        AND kind IN ('leaderless', 'under_min_isr', 'under_replicated')
    GROUP BY cluster_id
),
recoveries AS (
    SELECT cluster_id, max(seconds) AS slowest_seconds
    FROM recovery
    WHERE reaches(began_at, ended_at)
    GROUP BY cluster_id
),
-- `unclean` is null where no source tells.
churn AS (
    SELECT
        cluster_id,
        CAST(sum(elections) AS BIGINT) AS elections,
        CAST(sum(unclean) AS BIGINT) AS unclean
    FROM churn_day
    WHERE kind = 'cluster' AND inside(day)
    GROUP BY cluster_id
),
sums AS (
    SELECT
        cluster_id,
        cluster.name,
        seen.us / span_us() AS observed,
        if_seen(leaderless, risk.cluster_id, seen.us) AS leaderless,
        if_seen(under_min_isr, risk.cluster_id, seen.us) AS under_min_isr,
        if_seen(under_replicated, risk.cluster_id, seen.us) AS under_replicated,
        CASE WHEN seen.us > 0 THEN coalesce(incidents, 0) END AS incidents,
        slowest_seconds,
        if_seen(elections, churn.cluster_id, seen.us) AS elections,
        unclean,
        skew.skew
    FROM cluster
    JOIN seen USING (cluster_id)
    LEFT JOIN risk USING (cluster_id)
    LEFT JOIN incidents USING (cluster_id)
    LEFT JOIN recoveries USING (cluster_id)
    LEFT JOIN churn USING (cluster_id)
    LEFT JOIN skew ON skew.cluster_id = cluster.cluster_id AND skew.bin = -1
),
placed AS (
    SELECT
        *,
        row_number() OVER (
            ORDER BY observed < 0.5, coalesce(leaderless, 0) DESC, coalesce(under_min_isr, 0) DESC,
            coalesce(under_replicated, 0) DESC, name, cluster_id
        ) AS place
    FROM sums
)
SELECT *, CASE WHEN observed >= 0.5 THEN place END AS rank
FROM placed
ORDER BY place
