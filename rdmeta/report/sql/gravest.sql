-- The gravest incidents of the kinds in `kinds`, which lists them in that order, with what gold
-- tells of their moments in the span, and of the hours and days of the span that they touch.
WITH gravest AS (
    SELECT
        *, us(minutes) AS us, greatest(began_at, getvariable('since')) AS low,
        least(ended_at, getvariable('until')) AS high
    FROM incident
    WHERE reaches(began_at, ended_at) AND kind IN getvariable('kinds')
    ORDER BY list_position(getvariable('kinds'), kind), us DESC, began_at, cluster_id
    LIMIT 10
)
SELECT
    cluster_id, kind, epoch_us(began_at) AS began_us, epoch_us(ended_at) AS ended_us, us, most,
    partitions, topics, broker, censored,
    (
        SELECT list(topic ORDER BY risk DESC, topic) FROM (
            SELECT topic, us_total(CASE gravest.kind
                WHEN 'leaderless' THEN leaderless
                WHEN 'under_min_isr' THEN under_min_isr
                WHEN 'under_replicated' THEN under_replicated
                WHEN 'single_copy' THEN single_copy
                ELSE at_min_isr
            END) AS risk
            FROM risk_hour
            WHERE cluster_id = gravest.cluster_id
                AND hour >= date_trunc('hour', gravest.low) AND hour < gravest.high
            GROUP BY topic
            HAVING risk > 0
        )
    ) AS risky,
    (
        SELECT list(DISTINCT kind) FROM incident
        WHERE cluster_id = gravest.cluster_id AND kind <> gravest.kind
            AND kind IN getvariable('kinds')
            AND began_at < gravest.high AND ended_at > gravest.low
    ) AS kinds,
    (
        SELECT count(*) FROM reassignment
        WHERE cluster_id = gravest.cluster_id AND began_at < gravest.high
            AND (coalesce(ended_at, began_at) >= gravest.low OR outcome = 'running')
    ) AS reassignments,
    (
        SELECT count(*) FROM config_change
        WHERE cluster_id = gravest.cluster_id
            AND observed_at BETWEEN gravest.low AND gravest.high
    ) AS configs,
    (
        SELECT count(*) FROM controller
        WHERE cluster_id = gravest.cluster_id AND broker IS NOT NULL
            AND began_at BETWEEN gravest.low AND gravest.high
    ) AS controllers,
    (
        SELECT total(unclean) FROM churn_day
        WHERE cluster_id = gravest.cluster_id AND kind = 'cluster'
            AND day >= date_trunc('day', gravest.low) AND day < gravest.high
    ) AS unclean,
    (
        SELECT {'away': us_total(away), 'restarts': total(restarts)} FROM broker_day
        WHERE cluster_id = gravest.cluster_id AND broker = gravest.broker
            AND day >= date_trunc('day', gravest.low) AND day < gravest.high
    ) AS of_broker
FROM gravest
ORDER BY list_position(getvariable('kinds'), kind), us DESC, began_us, cluster_id
