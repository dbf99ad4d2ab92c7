"""The sentences of an explanation in Chinese."""

WORKER = "{program} 的工作线程 {worker} "
WHEN = "{times}，始于 {at_s:.3f} s，持续 {us:,.0f} µs"
TAKEN = "核 {core} 被其他线程占用（{who}{also}），" + WORKER + "无法运行" + WHEN
STALLED = "核 {core} 上 " + WORKER + "{did}" + WHEN
INTERRUPTED = STALLED + "，原因是处理中断 {who}"
STOLEN = STALLED + "，内核并未将该核分配给其他线程；整个试验期间宿主机共占用该核 {steal_ms:,.0f} ms"
OWN = STALLED + "，但该核并未被其他线程占用：工作线程自身阻塞，或宿主机不上报 steal 时间"
RING = (
    "；在 {mpps:.4g} Mpps 下，深度为 {ring:,} 的接收环 {holds_us:,.0f} µs 即满；丢失 {frames:,} 个包"
    "（若环起初为空，预计丢失 {expected:,} 个）"
)
DEVICE = "；其间丢失 {frames:,} 个包"
GENERATOR = "；因发生器未能及时收发，丢失 {frames:,} 个包"
BEHIND = "；发生器未能维持设定速率"
COUNTERS = (
    "整个试验期间，{program} 所在的核 {core}：切换到其他线程 {switches:,.0f} 次，中断 {interrupts:,.0f} 次，软中断 "
    "{softirqs:,.0f} 次，被宿主机占用 {steal_ms:,.0f} ms；{program} 缺页 {faults:,.0f} 次"
)
STARTS = {"taken": TAKEN, "interrupted": INTERRUPTED, "stalled": STALLED, "stolen": STOLEN, "own": OWN}
DID = {"ring": "停止轮询", "device": "停止轮询", "generator": "停顿"}
ENDS = {"ring": RING, "device": DEVICE, "generator": GENERATOR}


def begun(start: str, end: str) -> str:
    """The start of a sentence. A dl3gen worker that stalled may have polled even later, because it sends first."""
    return STARTS[start].replace("{did}", DID[end])


EXPLAIN_CHINESE = {
    **{f"explain.{start}.{end}": begun(start, end) + ENDS[end] for start in STARTS for end in ENDS},
    **{f"explain.{start}.generator.behind": begun(start, "generator") + BEHIND for start in STARTS},
    "explain.heading": "{record} 第 {line} 行：{dut}，{frame}帧，{mpps:.4g} Mpps，{seconds:.4g} s：{lost}",
    "explain.heading.lost": "{sent:,} 个包中丢失 {lost:,} 个（{ratio:.4%}）",
    "explain.heading.none": "没有丢包",
    "explain.times": "（共 {n:,} 次，以下为最严重的一次）",
    "explain.also": "，另有 {others:,} 个线程",
    "explain.alone": "{text}。",
    "explain.advised": "{text}。建议：{advice}。",
    "explain.invalid": "此试验无效，不能说明被测设备的性能；{reason}",
    "explain.place": "{frames:,} 个包，占丢包总数的 {share:.1%}：{place}",
    "explain.reset": "{frames:,} 个包，占丢包总数的 {share:.1%}：丢失于测试所要求的复位造成的中断期间；"
    "中断时长正是此项测试的测量对象",
    "explain.more": "另有 {frames:,} 个包在其他 {n:,} 次停顿中丢失",
    "explain.full": "核 {core} 上 dl3d 的工作线程 {worker} 已满负荷：每个包耗费 {cycles:,.0f} 个周期（{steps}），主频 "
    "{ghz:.2f} GHz 时最多转发 {most:.4g} Mpps；其负载为 {mpps:.4g} Mpps，包处理占用其 {busy:.0%} 的时间",
    "explain.overrun": "{frames:,} 个包丢失于停顿之外，当时有工作线程已满负荷",
    "explain.no_timeline": "{frames:,} 个包的丢失时刻未知，无法判断原因",
    "explain.silent": "{frames:,} 个包丢失时，发生器的工作线程轮询正常；被测设备不提供自身状态，无法判断原因",
    "explain.silent.steady": "{frames:,} 个包在 {share:.0%} 的时间内均匀丢失，其间发生器的工作线程轮询正常；"
    "被测设备不提供自身状态，无法判断原因",
    "explain.unexplained": "{frames:,} 个包丢失于任何已知停顿之外，且没有工作线程满负荷：证据不足，无法判断原因",
    "explain.unexplained.steady": "{frames:,} 个包在 {share:.0%} 的时间内均匀丢失，都在任何已知停顿之外，"
    "且没有工作线程满负荷：证据不足，无法判断原因",
    "explain.unexplained.full": "{frames:,} 个包丢失于任何已知停顿之外，且数量超出工作线程满负荷所能解释的范围："
    "证据不足，无法判断原因",
    "explain.counters": COUNTERS,
    "explain.counters.mhz": COUNTERS + "，之前 {before:,.0f} MHz，之后 {mhz:,.0f} MHz",
    "explain.counters.linux": "试验期间 Linux 向 dl3d 发送了 {messages:,.0f} 条 netlink 消息（路由、邻居、链路）",
    "explain.missing": "缺少的证据：{sentence}",
    "explain.headroom.none_lost": "在 {mpps:.4g} Mpps 下发送 {sent:,} 个包，没有丢包",
    "explain.headroom.unknown": "在 {mpps:.4g} Mpps 下发送 {sent:,} 个包，没有丢包；被测设备不提供自身状态，"
    "无法得知其距极限还有多远",
    "explain.headroom.worker": "核 {core} 上 dl3d 的工作线程 {worker} 负荷为 {fill:.0%}：每批 {burst:.1f} 个包时，"
    "每个包耗费 {cycles:,.0f} 个周期（{steps}），主频 {ghz:.2f} GHz；约在 {limit:.4g} Mpps 时达到满负荷，"
    "若批量增大能降低每包开销，则更高",
    "explain.headroom.stall": "核 {core} 上 dl3d 的工作线程 {worker} 最长停顿 {us:,.0f} µs；速率达到 {limit:.4g} Mpps "
    "时，深度为 {ring:,} 的接收环会在同样的停顿中溢出",
    "advice.isolate.device": "隔离核 {core}（isolcpus，或将 {who} 移走），或加深接收环",
    "advice.isolate.generator": "隔离核 {core}（isolcpus，或将 {who} 移走），该核属于发生器",
    "advice.interrupts.device": "将中断 {who} 移到其他核（/proc/irq、irqaffinity=），或加深接收环",
    "advice.interrupts.generator": "将中断 {who} 移到其他核（/proc/irq、irqaffinity=）",
    "advice.hypervisor": "为本机分配独占的核",
    "advice.full": "为端口增加队列和工作线程，或去掉开销最大的步骤",
    "advice.silent": "改测提供计数器的设备，或查看该设备自身的计数器",
    "advice.worker_next": "这是下一个瓶颈，出现在 {least:.4g} Mpps；步骤“{step}”开销最大",
    "advice.stall_next": "这是下一个瓶颈，出现在 {least:.4g} Mpps；隔离核 {core} 或加深接收环",
    "advice.memory": "为 dl3d 增加缓冲区（配置文件中的 memory）",
    "advice.cable": "检查链路及其两端",
    "advice.streams": "发生器发送了被测设备不应转发的包，请修改测试流的配置",
    "advice.routes": "用 'dl3 show route ADDRESS' 查询测试流的目的地址，并添加缺少的路由",
    "advice.shape": "用 'dl3 show subscriber' 查看哪个类别在等待；提高其配置的速率或上限，或加大 qos.held_packets",
    "advice.acls": "用 'dl3 acl check' 查询由哪条规则决定，需要放行时修改该列表",
    "advice.flows": "用 'dl3 flow find' 查询该流，需要放行时添加或修改它",
    "advice.unsynced": "等 'dl3 show status' 显示 dl3d 已就绪（ready）后再发送流量",
    "advice.neighbour": "让下一跳应答 ARP 或 ND，或在配置文件中写明其 MAC 地址",
    "advice.mac": "将测试流的 dst_mac 设为端口的 MAC 地址，见 'dl3 show ports'",
    "advice.mtu": "发送更小的帧，或提高 MTU",
    "advice.ttl": "增大所发包的 TTL",
    "advice.up": "启用端口并检查其链路",
    "advice.taps": "为端口创建 TAP 接口（在配置文件中写 linux:），由 Linux 处理此类包",
    "advice.unsupported": "用 'dl3 show unsupported' 查看工作线程不支持的功能",
    "advice.handover": "该工作线程处理不过来；各自的份额见 'dl3 show workers'",
    "advice.punt": "此类包经由 Linux 处理，速度较慢；限速见 'dl3 show classes'",
}
