-- What gold tells of the time of one incident: of its hours, of its days, and of its moments.
WITH risky AS (
    SELECT topic, sum(us(CASE getvariable('kind')
        WHEN 'leaderless' THEN leaderless
        WHEN 'under_min_isr' THEN under_min_isr
        WHEN 'under_replicated' THEN under_replicated
        WHEN 'single_copy' THEN single_copy
        ELSE at_min_isr
    END)) AS us
    FROM risk_hour
    WHERE cluster_id = getvariable('cluster')
        AND hour >= date_trunc('hour', getvariable('began')) AND hour < getvariable('ended')
    GROUP BY ALL
    HAVING us > 0
),
days AS (
    SELECT sum(us(away)) AS away, sum(restarts) AS restarts
    FROM broker_day
    WHERE cluster_id = getvariable('cluster') AND broker = getvariable('broker')
        AND day >= date_trunc('day', getvariable('began')) AND day < getvariable('ended')
)
SELECT
    (SELECT list(topic ORDER BY us DESC, topic)[:3] FROM risky) AS named,
    (SELECT CAST(away AS BIGINT) FROM days) AS away,
    (SELECT CAST(restarts AS BIGINT) FROM days) AS restarts,
    (
        SELECT list(kind) FROM (
            SELECT DISTINCT kind FROM incident
            WHERE cluster_id = getvariable('cluster') AND kind <> getvariable('kind')
                AND kind IN getvariable('kinds')
                AND began_at < getvariable('ended') AND ended_at > getvariable('began')
        )
    ) AS kinds,
    (
        SELECT count(*) FROM reassignment
        WHERE cluster_id = getvariable('cluster') AND began_at < getvariable('ended')
            AND coalesce(ended_at, began_at) >= getvariable('began')
    ) AS reassignments,
    (
        SELECT count(*) FROM config_change
        WHERE cluster_id = getvariable('cluster')
            AND observed_at >= getvariable('began') AND observed_at <= getvariable('ended')
    ) AS configs,
    (
        SELECT count(*) FROM controller
        WHERE cluster_id = getvariable('cluster') AND broker IS NOT NULL
            AND began_at >= getvariable('began') AND began_at <= getvariable('ended')
    ) AS controllers,
    (
        SELECT CAST(sum(unclean) AS BIGINT) FROM churn_day
        WHERE cluster_id = getvariable('cluster') AND kind = 'cluster'
            AND day >= date_trunc('day', getvariable('began')) AND day < getvariable('ended')
    ) AS unclean
