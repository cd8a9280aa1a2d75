-- Made by tools/spark_sql.py from ../broker_day.sql.
WITH
observed AS (
    SELECT
        cluster_id,
        timestamp_micros(unix_micros(counts_from) - pmod(unix_micros(counts_from), 86400000000)) AS day,
        counts_from,
        counts_to
    FROM observation
    WHERE counts_from < counts_to
),

observed_day AS (
    SELECT
        cluster_id,
        day,
        min(counts_from) AS begins_at,
        sum(unix_micros(counts_to) - unix_micros(counts_from)) AS us
    FROM observed
    GROUP BY ALL
),

-- Metadata lists the brokers that are registered and not fenced. Intervals end at midnight.
up AS (
    SELECT
        cluster_id,
        timestamp_micros(unix_micros(began_at) - pmod(unix_micros(began_at), 86400000000)) AS day,
        broker,
        began_at,
        ended_at,
        us,
        shutting_down,
        lag(ended_at) OVER in_time AS up_before,
        lag(shutting_down) OVER in_time AS shut_down_before
    FROM broker_interval
    WHERE us > 0 AND fenced IS NOT TRUE
    WINDOW in_time AS (PARTITION BY cluster_id, broker ORDER BY began_at)
),

up_day AS (
    SELECT
        cluster_id,
        day,
        broker,
        min(began_at) AS first_up,
        sum(us) AS us,
        coalesce(sum(us) FILTER (WHERE shutting_down), 0) AS shutting_down_us
    FROM up
    GROUP BY ALL
),

fenced_day AS (
    SELECT
        cluster_id,
        timestamp_micros(unix_micros(began_at) - pmod(unix_micros(began_at), 86400000000)) AS day,
        broker,
        sum(us) AS us
    FROM broker_interval
    WHERE us > 0 AND fenced
    GROUP BY ALL
),

-- The time in which the source tells whether brokers are fenced. A log without a broker tells it, too.
reported AS (
    SELECT
        cluster_id,
        began_at,
        ended_at,
        max(ended_at) OVER (
            PARTITION BY cluster_id ORDER BY began_at, ended_at
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached
    FROM (
        SELECT cluster_id, began_at, ended_at
        FROM broker_interval
        WHERE us > 0 AND fenced IS NOT NULL
        UNION
        SELECT cluster_id, began_at, ended_at
        FROM controller
        WHERE us > 0
    )
),

reported_day AS (
    SELECT
        cluster_id,
        timestamp_micros(unix_micros(began_at) - pmod(unix_micros(began_at), 86400000000)) AS day,
        sum(greatest(0, unix_micros(ended_at) - unix_micros(greatest(began_at, reached)))) AS us
    FROM reported
    GROUP BY ALL
),

replicas_day AS (
    SELECT DISTINCT
        cluster_id,
        timestamp_micros(unix_micros(began_at) - pmod(unix_micros(began_at), 86400000000)) AS day,
        replicas
    FROM partition_interval
    WHERE us > 0 AND replicas IS NOT NULL
),

placed AS (
    SELECT
        cluster_id,
        day,
        replicas,
        explode(array_distinct(replicas)) AS broker
    FROM replicas_day
),

broker_days AS (
    SELECT cluster_id, day, broker FROM up_day
    UNION
    SELECT cluster_id, day, broker FROM fenced_day
    UNION
    SELECT cluster_id, day, broker FROM placed
),

-- Brokers that were not up when observation of a day began, and until when.
late AS (
    SELECT
        broker_days.cluster_id,
        broker_days.day,
        broker_days.broker,
        coalesce(up_day.first_up, timestamp_micros(unix_micros(broker_days.day) + 86400000000)) AS until
    FROM broker_days
    JOIN observed_day USING (cluster_id, day)
    LEFT JOIN up_day USING (cluster_id, day, broker)
    WHERE coalesce(up_day.first_up > observed_day.begins_at, true)
),

-- When a replica of any partition lay on such a broker.
spans AS (
    SELECT DISTINCT
        late.cluster_id,
        late.day,
        late.broker,
        partition_interval.began_at,
        least(partition_interval.ended_at, late.until) AS ended_at
    FROM late
    JOIN placed USING (cluster_id, day, broker)
    JOIN partition_interval
        ON
            placed.cluster_id = partition_interval.cluster_id
            AND placed.day = timestamp_micros(unix_micros(partition_interval.began_at) - pmod(unix_micros(partition_interval.began_at), 86400000000))
            AND placed.replicas = partition_interval.replicas
            AND late.until > partition_interval.began_at
    WHERE partition_interval.us > 0
),

reaching AS (
    SELECT
        *,
        max(ended_at) OVER (
            PARTITION BY cluster_id, day, broker ORDER BY began_at, ended_at
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached
    FROM spans
),

away_first AS (
    SELECT
        cluster_id,
        day,
        broker,
        max(ended_at) AS ends_at,
        sum(greatest(0, unix_micros(ended_at) - unix_micros(greatest(began_at, reached)))) AS us
    FROM reaching
    GROUP BY ALL
),

-- From the first time up on, a broker is away in all observed time in which it is not up.
away_later AS (
    SELECT
        up_day.cluster_id,
        up_day.day,
        up_day.broker,
        sum(
            greatest(
                0,
                unix_micros(observed.counts_to)
                - unix_micros(greatest(observed.counts_from, up_day.first_up))
            )
        ) - max(up_day.us) AS us
    FROM up_day
    JOIN observed USING (cluster_id, day)
    GROUP BY ALL
),

-- A broker comes up, and right before that it was seen to be away.
restart AS (
    SELECT
        up.cluster_id,
        up.day,
        up.broker,
        up.began_at AS back_at,
        up.up_before,
        up.shut_down_before
    FROM up
    JOIN observed
        ON
            up.cluster_id = observed.cluster_id
            AND up.began_at > observed.counts_from
            AND up.began_at <= observed.counts_to
    LEFT JOIN up_day AS earlier
        ON
            up.cluster_id = earlier.cluster_id
            AND up.broker = earlier.broker
            AND earlier.day = timestamp_micros(unix_micros(up.began_at - INTERVAL 1 MICROSECOND) - pmod(unix_micros(up.began_at - INTERVAL 1 MICROSECOND), 86400000000))
            AND earlier.first_up < up.began_at
    LEFT JOIN away_first
        ON
            up.cluster_id = away_first.cluster_id
            AND up.broker = away_first.broker
            AND away_first.day = timestamp_micros(unix_micros(up.began_at - INTERVAL 1 MICROSECOND) - pmod(unix_micros(up.began_at - INTERVAL 1 MICROSECOND), 86400000000))
            AND away_first.ends_at = up.began_at
    WHERE
        up.began_at IS DISTINCT FROM up.up_before
        AND (earlier.broker IS NOT NULL OR away_first.broker IS NOT NULL)
),

-- A broker that shuts down in order says so before it is fenced, and until it registers again.
-- What lies before the day before is not looked at.
fenced_before AS (
    SELECT
        restart.cluster_id,
        restart.broker,
        restart.back_at,
        bool_or(fenced.shutting_down) AS shut_down,
        count(*) = count(fenced.shutting_down) AS is_reported,
        sum(fenced.us) AS us
    FROM restart
    JOIN broker_interval AS fenced
        ON
            restart.cluster_id = fenced.cluster_id
            AND restart.broker = fenced.broker
            AND fenced.began_at >= timestamp_micros(unix_micros(restart.day) - 86400000000)
            AND fenced.began_at >= coalesce(restart.up_before, fenced.began_at)
            AND fenced.ended_at <= restart.back_at
    WHERE fenced.us > 0 AND fenced.fenced
    GROUP BY ALL
),

judged AS (
    SELECT
        restart.cluster_id,
        restart.day,
        restart.broker,
        restart.back_at,
        CASE
            WHEN fenced_before.shut_down THEN false
            WHEN restart.up_before <= timestamp_micros(unix_micros(restart.day) - 86400000000) THEN NULL
            WHEN unix_micros(restart.back_at) - unix_micros(restart.up_before) > fenced_before.us
                THEN NULL
            WHEN fenced_before.is_reported THEN NOT restart.shut_down_before
        END AS is_unclean
    FROM restart
    LEFT JOIN fenced_before USING (cluster_id, broker, back_at)
),

-- Each restart of a broker which a partition prefers then.
watched AS (
    SELECT
        restart.cluster_id,
        restart.day,
        restart.broker,
        restart.back_at
    FROM restart
    JOIN partition_interval
        ON
            restart.cluster_id = partition_interval.cluster_id
            AND restart.broker = get(partition_interval.replicas, 0)
            AND restart.day = timestamp_micros(unix_micros(partition_interval.began_at) - pmod(unix_micros(partition_interval.began_at), 86400000000))
            AND restart.back_at >= partition_interval.began_at
            AND restart.back_at < partition_interval.ended_at
    GROUP BY ALL
),

-- The broker is no longer up, or no longer observed. The month of the restart ends the time, too.
up_ends AS (
    SELECT
        cluster_id,
        broker,
        ended_at,
        lead(began_at) OVER (PARTITION BY cluster_id, broker ORDER BY began_at) AS next_at
    FROM up
),

bounded AS (
    SELECT
        watched.cluster_id,
        watched.day,
        watched.broker,
        watched.back_at,
        least(
            min(up_ends.ended_at), timestamp_micros((unix_date(last_day(date_from_unix_date((unix_micros(watched.back_at) DIV 86400000000)::INT))) + 1) * 86400000000)
        ) AS bound
    FROM watched
    JOIN up_ends
        ON
            watched.cluster_id = up_ends.cluster_id
            AND watched.broker = up_ends.broker
            AND watched.back_at < up_ends.ended_at
    WHERE up_ends.ended_at IS DISTINCT FROM up_ends.next_at
    GROUP BY watched.cluster_id, watched.day, watched.broker, watched.back_at
),

-- When another broker, or none, led a partition that prefers a broker which came back.
led_by_others AS (
    SELECT DISTINCT
        partition_interval.cluster_id,
        get(partition_interval.replicas, 0) AS broker,
        partition_interval.began_at,
        partition_interval.ended_at
    FROM partition_interval
    SEMI JOIN watched
        ON
            partition_interval.cluster_id = watched.cluster_id
            AND get(partition_interval.replicas, 0) = watched.broker
    WHERE
        us > 0
        AND leader IS DISTINCT FROM get(replicas, 0)
        AND NOT coalesce(array_contains(adding, get(replicas, 0)), false)
),

led_reaching AS (
    SELECT
        *,
        max(ended_at) OVER (PARTITION BY cluster_id, broker) AS last_end,
        max(ended_at) OVER (
            PARTITION BY cluster_id, broker ORDER BY began_at, ended_at
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached
    FROM led_by_others
),

-- A stretch begins where none before it reaches, and ends where the next one finds that.
stretches AS (
    SELECT
        cluster_id,
        broker,
        began_at,
        coalesce(
            lead(reached) OVER (PARTITION BY cluster_id, broker ORDER BY began_at),
            last_end
        ) AS ended_at
    FROM led_reaching
    WHERE coalesce(began_at > reached, true)
),

preferred AS (
    SELECT
        bounded.cluster_id,
        bounded.day,
        bounded.broker,
        CASE
            WHEN coalesce(stretches.ended_at < bounded.bound, true)
                THEN
                    unix_micros(coalesce(stretches.ended_at, bounded.back_at))
                    - unix_micros(bounded.back_at)
        END AS us
    FROM bounded
    LEFT JOIN stretches
        ON
            bounded.cluster_id = stretches.cluster_id
            AND bounded.broker = stretches.broker
            AND bounded.back_at >= stretches.began_at
            AND bounded.back_at < stretches.ended_at
),

preferred_day AS (
    SELECT
        cluster_id,
        day,
        broker,
        array_sort(array_agg(us / 1e6) FILTER (WHERE us IS NOT NULL)) AS seconds,
        count(*) - count(us) AS open
    FROM preferred
    GROUP BY ALL
),

restart_day AS (
    SELECT
        cluster_id,
        day,
        broker,
        count(*) AS restarts,
        count(*) FILTER (WHERE is_unclean) AS unclean,
        count(*) - count(is_unclean) AS unknown
    FROM judged
    GROUP BY ALL
)

SELECT
    broker_days.cluster_id,
    broker_days.day,
    broker_days.broker,
    coalesce(up_day.us, 0) / 60e6 AS up,
    CASE WHEN reported_day.us > 0 THEN coalesce(fenced_day.us, 0) / 60e6 END AS fenced,
    CASE WHEN reported_day.us > 0 THEN coalesce(up_day.shutting_down_us, 0) / 60e6 END
        AS shutting_down,
    (observed_day.us - coalesce(reported_day.us, 0)) / 60e6 AS unknown_fenced,
    (coalesce(away_first.us, 0) + coalesce(away_later.us, 0)) / 60e6 AS away,
    coalesce(restart_day.restarts, 0) AS restarts,
    CASE WHEN reported_day.us > 0 THEN coalesce(restart_day.unclean, 0) END AS unclean_restarts,
    coalesce(restart_day.unknown, 0) AS unknown_restarts,
    coalesce(preferred_day.seconds, array()) AS preferred_seconds,
    coalesce(preferred_day.open, 0) AS preferred_open,
    observed_day.us / 60e6 AS observed
FROM broker_days
JOIN observed_day USING (cluster_id, day)
LEFT JOIN up_day USING (cluster_id, day, broker)
LEFT JOIN fenced_day USING (cluster_id, day, broker)
LEFT JOIN reported_day USING (cluster_id, day)
LEFT JOIN away_first USING (cluster_id, day, broker)
LEFT JOIN away_later USING (cluster_id, day, broker)
LEFT JOIN restart_day USING (cluster_id, day, broker)
LEFT JOIN preferred_day USING (cluster_id, day, broker)
