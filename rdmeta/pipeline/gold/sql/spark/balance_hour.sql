-- Made by tools/spark_sql.py from ../balance_hour.sql.
-- Steady partitions all run from midnight to midnight: equal spans are counted first, then cut at
-- hours, and only then are the lists of replicas taken apart.
WITH spans AS (
    SELECT
        cluster_id,
        leader,
        replicas,
        coalesce(array_contains(adding, get(replicas, 0)), false) AS first_is_added,
        began_at,
        ended_at,
        count(*) AS partitions
    FROM state
    WHERE began_at < ended_at
    GROUP BY ALL
),

pieces AS (
    SELECT
        cluster_id,
        hour,
        leader,
        replicas,
        first_is_added,
        sum(partitions * (unix_micros(least(ended_at, hour + INTERVAL 1 HOUR)) - unix_micros(greatest(began_at, hour)))) AS us
    FROM (SELECT *, explode(transform(filter(sequence(unix_micros(began_at) - pmod(unix_micros(began_at), 3600000000), unix_micros(ended_at), 3600000000), each -> each < unix_micros(ended_at)), each -> timestamp_micros(each))) AS hour FROM spans)
    GROUP BY ALL
),

shares AS (
    SELECT cluster_id, hour, leader AS broker, us AS led, 0 AS held, 0 AS preferred, 0 AS by_others
    FROM pieces
    UNION ALL
    SELECT cluster_id, hour, explode(replicas), 0, us, 0, 0
    FROM pieces
    UNION ALL
    SELECT
        cluster_id,
        hour,
        get(replicas, 0),
        0,
        0,
        us,
        CASE WHEN leader IS DISTINCT FROM get(replicas, 0) THEN us ELSE 0 END
    FROM pieces
    WHERE NOT first_is_added
),

summed AS (
    SELECT
        cluster_id,
        hour,
        broker,
        sum(led)::DECIMAL(38, 0) AS led,
        sum(held)::DECIMAL(38, 0) AS held,
        sum(preferred)::DECIMAL(38, 0) AS preferred,
        sum(by_others)::DECIMAL(38, 0) AS by_others
    FROM shares
    GROUP BY ALL
),

-- Brokers that are fenced are not listed, but they have a rack.
listed AS (
    SELECT
        cluster_id,
        hour,
        broker,
        max_by(rack, (began_at, version)) FILTER (WHERE rack IS NOT NULL) AS rack,
        sum((unix_micros(least(ended_at, hour + INTERVAL 1 HOUR)) - unix_micros(greatest(began_at, hour)))) FILTER (WHERE fenced IS NOT TRUE) AS us
    FROM (
        SELECT *, explode(transform(filter(sequence(unix_micros(began_at) - pmod(unix_micros(began_at), 3600000000), unix_micros(ended_at), 3600000000), each -> each < unix_micros(ended_at)), each -> timestamp_micros(each))) AS hour
        FROM broker_interval
        WHERE began_at < ended_at
    )
    GROUP BY ALL
),

observed AS (
    SELECT
        cluster_id,
        hour,
        sum((unix_micros(least(ended_at, hour + INTERVAL 1 HOUR)) - unix_micros(greatest(began_at, hour)))) AS us
    FROM (SELECT *, explode(transform(filter(sequence(unix_micros(began_at) - pmod(unix_micros(began_at), 3600000000), unix_micros(ended_at), 3600000000), each -> each < unix_micros(ended_at)), each -> timestamp_micros(each))) AS hour FROM covered)
    GROUP BY ALL
),

-- A broker that holds replicas but is neither listed nor leads does not count for the mean.
brokers AS (
    SELECT
        coalesce(summed.cluster_id, listed.cluster_id) AS cluster_id,
        coalesce(summed.hour, listed.hour) AS hour,
        coalesce(summed.broker, listed.broker) AS broker,
        rack,
        coalesce(led, 0) AS led,
        coalesce(held, 0) AS held,
        coalesce(preferred, 0) AS preferred,
        coalesce(by_others, 0) AS by_others,
        coalesce(listed.us, 0) AS listed,
        coalesce(listed.us, 0) > 0 OR coalesce(led, 0) > 0 AS counts
    FROM (SELECT * FROM summed WHERE broker IS NOT NULL) AS summed
    FULL JOIN listed
        ON
            summed.cluster_id = listed.cluster_id
            AND summed.hour = listed.hour
            AND summed.broker = listed.broker
    WHERE summed.broker IS NOT NULL OR listed.us > 0
),

clusters AS (
    SELECT
        cluster_id,
        hour,
        count(*) FILTER (WHERE counts) AS members,
        sum(led) AS led,
        sum(held) AS held,
        sum(held) FILTER (WHERE counts) AS held_by_members,
        sum(preferred) AS preferred,
        sum(by_others) AS by_others,
        sum(listed) AS listed,
        max(led) AS most,
        sum(led * led) AS squares
    FROM brokers
    GROUP BY ALL
),

leaderless AS (
    SELECT cluster_id, hour, led AS us
    FROM summed
    WHERE broker IS NULL
),

found AS (
    SELECT
        brokers.cluster_id,
        brokers.hour,
        'broker' AS kind,
        brokers.broker,
        brokers.rack,
        brokers.led,
        brokers.held,
        brokers.preferred,
        brokers.by_others,
        CASE
            WHEN counts AND clusters.led > 0
                THEN (brokers.led * members - clusters.led)::DOUBLE / clusters.led::DOUBLE
        END AS skew,
        CASE
            WHEN counts AND held_by_members > 0
                THEN
                    (brokers.held * members - held_by_members)::DOUBLE
                    / held_by_members::DOUBLE
        END AS replica_skew,
        NULL AS max_to_mean,
        NULL AS variation,
        NULL AS leaderless,
        NULL AS listed
    FROM brokers
    INNER JOIN clusters USING (cluster_id, hour)
    UNION ALL
    SELECT
        cluster_id,
        hour,
        'rack',
        NULL,
        rack,
        sum(led),
        sum(held),
        sum(preferred),
        sum(by_others),
        NULL,
        NULL,
        NULL,
        NULL,
        NULL,
        sum(listed)
    FROM brokers
    WHERE rack IS NOT NULL
    GROUP BY cluster_id, hour, rack
    UNION ALL
    SELECT
        clusters.cluster_id,
        clusters.hour,
        'cluster',
        NULL,
        NULL,
        led,
        held,
        preferred,
        by_others,
        NULL,
        NULL,
        CASE WHEN led > 0 THEN (most * members)::DOUBLE / led::DOUBLE END,
        CASE
            WHEN led > 0
                THEN sqrt((members * squares - led * led)::DOUBLE) / led::DOUBLE
        END,
        coalesce(leaderless.us, 0),
        listed
    FROM clusters
    LEFT JOIN leaderless USING (cluster_id, hour)
)

SELECT
    found.cluster_id,
    found.hour,
    kind,
    broker,
    rack,
    led::DOUBLE / us::DOUBLE AS leaders,
    held::DOUBLE / us::DOUBLE AS replicas,
    preferred::DOUBLE / us::DOUBLE AS preferred,
    by_others::DOUBLE / us::DOUBLE AS preferred_led_by_others,
    skew,
    replica_skew,
    max_to_mean,
    variation,
    leaderless::DOUBLE / us::DOUBLE AS leaderless,
    listed::DOUBLE / us::DOUBLE AS brokers,
    us::BIGINT / 60e6 AS observed
FROM found
INNER JOIN observed ON found.cluster_id = observed.cluster_id AND found.hour = observed.hour
