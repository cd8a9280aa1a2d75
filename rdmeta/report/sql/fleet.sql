-- What happened to each cluster, worst first. One that was observed for less than half of the time
-- comes last and has no rank.
WITH risk AS (
    SELECT
        cluster_id, us_total(leaderless) AS leaderless,
        known_sum(under_min_isr, under_replicated = 0) AS under_min_isr,
        us_total(under_replicated) AS under_replicated
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
    SELECT cluster_id, total(elections) AS elections, total(unclean) AS unclean
    FROM churn_day
    WHERE kind = 'cluster' AND inside(day)
    GROUP BY cluster_id
),
sums AS (
    SELECT
        cluster_id, cluster.name, seen.us / span_us() AS observed,
        if_seen(leaderless, risk.cluster_id, seen.us) AS leaderless,
        if_seen(under_min_isr, risk.cluster_id, seen.us) AS under_min_isr,
        if_seen(under_replicated, risk.cluster_id, seen.us) AS under_replicated,
        if_seen(incidents, incidents.cluster_id, seen.us) AS incidents,
        if_seen(elections, churn.cluster_id, seen.us) AS elections,
        slowest_seconds, unclean, skew.skew
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
